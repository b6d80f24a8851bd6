/** Makes an interrupted run end through `exit`, where processes are killed and temporary folders removed. */
export function exitOnSignals(): void {
  process.once('SIGINT', () => process.exit(130))
  process.once('SIGTERM', () => process.exit(143))
}
