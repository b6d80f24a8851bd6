import { setTimeout as pause } from 'node:timers/promises'

import { callAgent } from '../support/agent.ts'
import { AGENT, Replica } from './replica.ts'

/** Calls that wait for their answers at the same time. */
const CALLERS = 24

/** The steady load before and after each event, in ms. */
const STEADY_MS = 500

/**
 * The time from a kill to the replacement, in ms: shorter than the TTL, and long enough for the gateway to try the dead
 * replica again.
 */
const DEAD_MS = 1_500

interface FailedCall {
  readonly began: number
  readonly ended: number
  readonly answer: unknown
}

export interface ReplicasReport {
  readonly calls: number
  readonly callsPerSecond: number
  readonly rounds: number
  /** Answers by instance. */
  readonly byInstance: Readonly<Record<string, number>>
  /** Failed calls that were under way when a replica was killed. */
  readonly failedAtKills: number
  /** All other failed calls. */
  readonly failedOtherwise: readonly FailedCall[]
  /** The longest call that succeeded, in ms. */
  readonly slowestMs: number
}

/**
 * Calls an agent with three replicas, while one is killed with SIGKILL and replaced, and another leaves and is replaced; in
 * rounds, for about this time.
 * @param bases The nodes. Each call goes to the next one.
 * @param pauseMs The time of a caller between its calls.
 */
export async function runReplicas(bases: readonly string[], ms: number, pauseMs = 0): Promise<ReplicasReport> {
  const baseOf = (n: number): string => bases[n % bases.length] ?? ''
  const replicas = new Map<string, Replica>()
  for (const [n, id] of ['a', 'b', 'c'].entries()) replicas.set(id, await Replica.start(baseOf(n), id))
  const failed: FailedCall[] = []
  const byInstance: Record<string, number> = {}
  const kills: { began: number; ended: number }[] = []
  const over = new AbortController()
  let [calls, slowestMs] = [0, 0]
  const caller = async (): Promise<void> => {
    while (!over.signal.aborted) {
      const began = performance.now()
      const answer = (await callAgent(baseOf(calls++), AGENT, 'message/send')) as { result?: { by?: string } }
      const ended = performance.now()
      const by = answer.result?.by
      if (by === undefined) failed.push({ began, ended, answer })
      else {
        byInstance[by] = (byInstance[by] ?? 0) + 1
        slowestMs = Math.max(slowestMs, ended - began)
      }
      if (pauseMs > 0) await pause(pauseMs)
    }
  }
  const began = performance.now()
  const load = Promise.all(Array.from({ length: CALLERS }, caller))
  let rounds = 0
  try {
    for (; rounds === 0 || performance.now() - began < ms; rounds++) {
      await pause(STEADY_MS)
      const at = performance.now()
      await replicas.get('a')?.crash()
      kills.push({ began: at, ended: performance.now() })
      await pause(DEAD_MS)
      replicas.set('a', await Replica.start(baseOf(rounds), 'a'))
      await replicas.get('b')?.leave()
      replicas.set('b', await Replica.start(baseOf(rounds + 1), 'b'))
    }
    await pause(STEADY_MS)
  } finally {
    over.abort()
    await load
  }
  const seconds = (performance.now() - began) / 1000
  // The gateway sees the end of the process when the kernel closes its connections.
  const atKill = failed.filter((call) => kills.some((kill) => call.began <= kill.ended && call.ended >= kill.began))
  return {
    calls,
    callsPerSecond: Math.round(calls / seconds),
    rounds,
    byInstance,
    failedAtKills: atKill.length,
    failedOtherwise: failed.filter((call) => !atKill.includes(call)),
    slowestMs: Math.round(slowestMs),
  }
}

/** The largest number of calls that a replica can have under way when it is killed, with some more for unequal shares. */
export const MOST_UNDER_WAY = CALLERS / 2
