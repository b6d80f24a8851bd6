import { afterAll, beforeAll } from 'vitest'

import type { AgentBehavior, TestAgent } from './agent.ts'
import { startAgent } from './agent.ts'
import type { ReceivedEvent } from './client.ts'
import { StreamClient } from './client.ts'
import type { Host, HostOptions } from './host.ts'
import { openHost } from './host.ts'

const END: AgentBehavior = (response) => void response.end()

/** One agent and one host for the tests of a file that differ only in what the agent does. */
export function sharedBench(options: HostOptions = {}): {
  readonly agent: () => TestAgent
  readonly host: () => Host
  /** All events that a client gets of a stream with this agent. */
  readonly events: (behavior: AgentBehavior) => Promise<readonly ReceivedEvent[]>
} {
  let agent: TestAgent | undefined
  let host: Host | undefined
  let behavior = END
  beforeAll(async () => {
    agent = await startAgent((response, request) => behavior(response, request), afterAll)
    host = await openHost(agent.url, { ...options, cleanUp: afterAll })
  })
  return {
    agent: () => agent!,
    host: () => host!,
    async events(next) {
      behavior = next
      const client = await StreamClient.open(host!.base)
      return client.all()
    },
  }
}
