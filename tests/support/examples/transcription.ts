/** A transcription in the form of Deepgram's answers, of these paragraphs, each of one sentence and two seconds. */
export function transcriptionOf(paragraphs: string[], changes: { metadata?: object; channel?: object } = {}) {
  return {
    metadata: {
      transaction_key: 'deprecated',
      request_id: 'request-1',
      sha256: 'f'.repeat(64),
      created: '2026-11-01T10:00:00.000Z',
      duration: paragraphs.length * 2,
      channels: 1,
      models: ['model-1'],
      model_info: { 'model-1': { name: 'general-nova-3', version: '2026-01-01.0', arch: 'nova-3' } },
      ...changes.metadata,
    },
    results: {
      channels: [
        {
          alternatives: [
            {
              transcript: paragraphs.join(' '),
              confidence: 0.98,
              words: [{ word: 'the', start: 0, end: 0.2, confidence: 0.9, punctuated_word: 'The' }],
              paragraphs: {
                transcript: `\n${paragraphs.join('\n\n')}`,
                paragraphs: paragraphs.map((text, index) => ({
                  sentences: [{ text, start: index * 2, end: index * 2 + 2 }],
                  num_words: text.split(' ').length,
                  start: index * 2,
                  end: index * 2 + 2,
                })),
              },
            },
          ],
          detected_language: 'en',
          language_confidence: 0.99,
          ...changes.channel,
        },
      ],
    },
  };
}
