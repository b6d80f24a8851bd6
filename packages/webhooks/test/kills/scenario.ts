import type { ChildProcess } from 'node:child_process'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

import { testFolder } from '@signalbox/testkit/test-folder'
import { until } from '@signalbox/testkit/until'
import { onTestFinished } from 'vitest'

import { answer, openReceiver } from '@signalbox/testkit/webhook-receiver'

export interface KillReport {
  readonly kills: number
  /** Numbers that the store acknowledged. */
  readonly published: number
  /** Deliveries that the endpoint accepted, repeats included. */
  readonly accepted: number
  /** Acknowledged numbers that never arrived. */
  readonly lost: readonly number[]
  /** Accepted numbers that arrived before an earlier one. */
  readonly early: readonly number[]
  /** The most accepted repeats after one kill. */
  readonly mostRepeats: number
}

class KilledBroker {
  readonly #child: ChildProcess
  readonly #exited: Promise<unknown>

  private constructor(child: ChildProcess) {
    this.#child = child
    this.#exited = once(child, 'exit')
  }

  static async start(args: readonly string[], published: (n: number) => void): Promise<KilledBroker> {
    const child = fork(fileURLToPath(new URL('broker-main.ts', import.meta.url)), [...args], {
      execArgv: ['--conditions=@signalbox/source'],
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    const ready = Promise.withResolvers<void>()
    child.on('message', (message) => {
      if (typeof message === 'number') published(message)
      else ready.resolve()
    })
    child.once('exit', () => ready.reject(new Error('the broker ended before it was ready')))
    await ready.promise
    return new KilledBroker(child)
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#exited
  }
}

/**
 * Kills a broker that publishes and delivers, again and again, while the endpoint is down for a part of the time. Then
 * starts it once more, and waits until all numbers have arrived.
 * @param more Returns `true` while another kill shall follow
 */
export async function runKills(more: (kills: number) => boolean): Promise<KillReport> {
  const path = testFolder()
  const receiver = await openReceiver()
  const published = new Set<number>()
  const accepted = new Set<number>()
  const early: number[] = []
  let [deliveries, repeats, mostRepeats, next, highest, down] = [0, 0, 0, 0, -1, false]
  receiver.reply = (response, received) => {
    if (down) {
      if (Math.random() < 0.5) response.destroy()
      else answer(503)(response, received)
      return
    }
    const n = Number(received.body)
    deliveries++
    if (accepted.has(n)) mostRepeats = Math.max(mostRepeats, ++repeats)
    else {
      // A number without an acknowledgment may be stored all the same, so only the order is known.
      if (n < highest) early.push(highest)
      accepted.add(n)
      highest = n
    }
    answer(204)(response, received)
  }
  const start = (publishes: boolean): Promise<KilledBroker> =>
    KilledBroker.start([path, receiver.url, String(next), String(publishes)], (n) => published.add(n))
  let kills = 0
  for (; more(kills); kills++) {
    repeats = 0
    down = Math.random() < 0.3
    const broker = await start(true)
    // On a slow disk a broker may publish nothing in this time: the first one is killed after that.
    if (kills === 0) await until(() => published.size > 0)
    await pause(Math.random() * 150)
    await broker.kill()
    // Leaves a gap, so that no number is published twice.
    next = Math.max(next, ...published) + 1_000
  }
  down = false
  repeats = 0
  const broker = await start(false)
  await until(() => [...published].every((n) => accepted.has(n)))
  await broker.kill()
  return {
    kills,
    published: published.size,
    accepted: deliveries,
    lost: [...published].filter((n) => !accepted.has(n)),
    early,
    mostRepeats,
  }
}
