// The kind of a call of a model, and its provider, as an attempt's usage names them: traces have them from there.

/** Providers whose servers have hosts of their own, by the names that OpenTelemetry's conventions give them. */
const providers: [RegExp, string][] = [
  [/^api\.openai\.com$/, 'openai'],
  [/\.openai\.azure\.com$/, 'azure.ai.openai'],
  [/^api\.anthropic\.com$/, 'anthropic'],
  [/^bedrock-runtime\..+\.amazonaws\.com$/, 'aws.bedrock'],
  [/aiplatform\.googleapis\.com$/, 'gcp.vertex_ai'],
  [/^generativelanguage\.googleapis\.com$/, 'gcp.gemini'],
  [/^api\.x\.ai$/, 'x_ai'],
  [/^api\.deepseek\.com$/, 'deepseek'],
  [/^api\.groq\.com$/, 'groq'],
  [/^api\.mistral\.ai$/, 'mistral_ai'],
  [/^api\.perplexity\.ai$/, 'perplexity'],
];

/**
 * Returns what usage says of a call: `chat openai`, or `chat` alone where the address tells no provider.
 *
 * @internal
 */
export function modelCall(kind: 'chat' | 'embeddings', url: string): string {
  const { hostname } = new URL(url);
  const [, provider] = providers.find(([host]) => host.test(hostname)) ?? [];
  return provider ? `${kind} ${provider}` : kind;
}
