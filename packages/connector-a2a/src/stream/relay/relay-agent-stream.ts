import type { RelayEnd, RelayOptions } from './relay-options.ts'
import { Relay } from './relay.ts'

/**
 * Sends the agent's events to the client's node, as fast as the client reads them. Resolves when
 * the client has read all events, or when the stream was abandoned; the agent's response has then
 * ended or was aborted. Rejects only for a bug.
 */
export function relayAgentStream(options: RelayOptions): Promise<RelayEnd> {
  return new Relay(options).run()
}
