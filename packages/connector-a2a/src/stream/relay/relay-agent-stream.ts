import type { RelayEnd, RelayOptions } from './relay-options.ts'
import { Relay } from './relay.ts'

/**
 * Sends the agent's events to the node that has the client, as fast as the client takes them (A8, A9, A11). It resolves
 * when the client has taken all, or when the stream was given up, with the agent's response ended or aborted. It
 * rejects only for a bug.
 */
export function relayAgentStream(options: RelayOptions): Promise<RelayEnd> {
  return new Relay(options).run()
}
