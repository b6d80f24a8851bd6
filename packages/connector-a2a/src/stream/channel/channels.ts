/** Where a stream's events go, from the agent's node to the client's (specification, "Events", internal channels). */
export function streamChannel(streamId: string): string {
  return `_AGENTS_.stream/${streamId}`
}

/** Where the client's node grants credit and cancels (A11). */
export function controlChannel(streamId: string): string {
  return `_AGENTS_.stream/${streamId}/control`
}
