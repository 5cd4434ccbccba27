/** Answers a request with an error: a code for programs, a sentence for people. */
export function refuse(status: number, code: string, message: string): Response {
  return Response.json({ error: { code, message } }, { status });
}
