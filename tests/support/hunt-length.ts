/** How long a random hunt is: short in `npm test`, where each run draws anew, and long in `npm run soak`. */
export function huntLength(short: number, long: number): number {
  return process.env.SOAK ? long : short;
}
