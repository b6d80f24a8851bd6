import { setTimeout as pause } from 'node:timers/promises'

import type { NatsServer } from '@signalbox/engine-nats/testing'

const ANSWER_MS = 2_000
const AGAIN_MS = 200

/** The part of `/jsz` about the streams that a server stores. */
interface Jsz {
  readonly account_details?: readonly {
    readonly stream_detail?: readonly { readonly name: string; readonly state: { readonly last_seq: number } }[]
  }[]
}

/**
 * Resolves when every server reports that it is healthy and stores the newest data of any server at the time of the
 * call; only then may the next one be struck. Rejects after `milliseconds`.
 */
export async function inStep(servers: readonly NatsServer[], milliseconds: number): Promise<void> {
  const until = performance.now() + milliseconds
  const due = await trying(until, () => furthest(servers))
  await trying(until, async () => {
    await Promise.all(servers.map((server) => server.monitor('/healthz', ANSWER_MS)))
    for (const server of servers) {
      const held = await lastSequences(server)
      for (const [stream, last] of held) {
        if (last < (due.get(stream) ?? 0))
          throw new Error(`${stream} is at ${last} of ${due.get(stream)} at ${server.url}`)
      }
    }
  })
}

/** Returns the last sequence of each existing stream, on any server. */
async function furthest(servers: readonly NatsServer[]): Promise<ReadonlyMap<string, number>> {
  const most = new Map<string, number>()
  for (const server of servers) {
    for (const [stream, last] of await lastSequences(server)) most.set(stream, Math.max(last, most.get(stream) ?? 0))
  }
  return most
}

async function lastSequences(server: NatsServer): Promise<ReadonlyMap<string, number>> {
  const { account_details: accounts = [] } = (await server.monitor('/jsz?accounts=true&streams=true', ANSWER_MS)) as Jsz
  const streams = accounts.flatMap(({ stream_detail: details = [] }) => details)
  return new Map(streams.map(({ name, state }) => [name, state.last_seq]))
}

async function trying<T>(until: number, step: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await step()
    } catch (error) {
      if (performance.now() > until) throw new Error(`servers are not in step: ${String(error)}`, { cause: error })
      await pause(AGAIN_MS)
    }
  }
}
