/** A function call the model made earlier, with what came of it if that has been told. */
export interface PastCall {
  id: string;
  name: string;
  arguments: string;
  output?: string;
}

/** The messages and calls so far, whichever API they came by. */
export interface Conversation {
  /** System and developer messages. */
  instructions: string[];
  /** The user's messages, oldest first. */
  user: string[];
  /** The model's own messages, and the outputs of its calls in earlier turns. */
  assistant: string[];
  /** Calls since the user last spoke. */
  calls: PastCall[];
}

/** Returns a conversation in which nothing has been said. */
export function emptyConversation(): Conversation {
  return { instructions: [], user: [], assistant: [], calls: [] };
}

/** Adds a message by its role; what a user says opens a new turn. */
export function say(conversation: Conversation, role: string, text: string): void {
  if (role === 'user') {
    conversation.user.push(text);
    // Outcomes of earlier turns stay known, as something that was said.
    conversation.assistant.push(...outputsOf(conversation));
    conversation.calls = [];
  } else if (role === 'assistant') conversation.assistant.push(text);
  else conversation.instructions.push(text);
}

/** Returns the outputs of the calls of this turn. */
export function outputsOf({ calls }: Conversation): string[] {
  return calls.flatMap(({ output }) => (output === undefined ? [] : [output]));
}

/** Returns all text of the conversation, for counting and for finding facts. */
export function wholeText(conversation: Conversation): string {
  const { instructions, user, assistant, calls } = conversation;
  const called = calls.map((call) => call.arguments);
  return [...instructions, ...user, ...assistant, ...called, ...outputsOf(conversation)].join('\n');
}

/** Returns a rough count of tokens: one for each four characters. */
export function countTokens(text: string): number {
  return Math.ceil(text.length / 4);
}
