import { KeepAliveConnection, postBytes } from '../../harness/keep-alive-connection.ts'
import { toolCall } from '../../harness/mcp.ts'
import type { Attack } from '../attack.ts'
import type { Caller } from '../caller.ts'
import { failureOf, outcomeOf } from '../caller.ts'
import type { Scene } from '../scene.ts'
import { during } from '../tally.ts'

/**
 * Sends the same request repeatedly on many connections and counts the answers; resolves with the duration, in seconds.
 */
export async function floodWith(scene: Scene, caller: Caller, body: string, connections: number): Promise<number> {
  const request = postBytes(`${scene.http}/mcp`, body, caller.identity.headers)
  const open = await Promise.all(
    Array.from({ length: connections }, () =>
      KeepAliveConnection.open(scene.http, { localAddress: caller.identity.address }),
    ),
  )
  const begin = performance.now()
  await during(scene.floodMs, connections, async (_index, worker) => {
    const connection = open[worker]
    if (connection === undefined) return
    try {
      const { status, body } = await connection.request(request)
      scene.tally.count(outcomeOf({ status, text: body.toString() }))
    } catch (error) {
      scene.tally.count(failureOf(error))
    }
  })
  for (const connection of open) connection.close()
  return (performance.now() - begin) / 1000
}

/** There is no rate limit: the other callers share the processor with one that sends at full speed. */
export const flood: Attack = {
  name: 'flood',
  about: 'one caller that sends queue messages over 64 connections at full speed',
  prepare: (scene) =>
    Promise.resolve(async () => {
      await floodWith(scene, scene.attacker(), toolCall('queue_send', { channel: 'attack.flood', body: 'x' }), 64)
    }),
}
