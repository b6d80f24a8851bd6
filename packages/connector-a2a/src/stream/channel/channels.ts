/**
 * Returns the channel for a stream's events, from the agent's node to the client's.
 */
export function streamChannel(streamId: string): string {
  return `_AGENTS_.stream/${streamId}`
}

/** Returns the channel on which the client's node grants credit and cancels. */
export function controlChannel(streamId: string): string {
  return `_AGENTS_.stream/${streamId}/control`
}
