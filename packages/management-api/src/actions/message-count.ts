/** Returns `1 message` or `2 messages`, for details of audit entries. */
export function messageCount(number: number): string {
  return number === 1 ? '1 message' : `${number} messages`
}
