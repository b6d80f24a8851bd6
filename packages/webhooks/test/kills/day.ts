import type { ChildProcess } from 'node:child_process'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

import { testFolder } from '@signalbox/testkit/test-folder'
import { until } from '@signalbox/testkit/until'
import { answer, openReceiver } from '@signalbox/testkit/webhook-receiver'
import { onTestFinished } from 'vitest'

const HOUR_MS = 3_600_000

export interface DeadLetter {
  readonly body: string
  readonly tags: Readonly<Record<string, string>>
}

export interface DayReport {
  readonly kills: number
  /** Attempts while the endpoint was down. */
  readonly attempts: number
  /** Those of each number. */
  readonly attemptsOf: Readonly<Record<number, number>>
  /** The simulated time from the first to the last attempt of the first number, in hours. */
  readonly hours: number
  readonly letters: readonly DeadLetter[]
  /** The numbers that the endpoint accepted, in their order, repeats included. */
  readonly accepted: readonly number[]
}

interface DayOptions {
  readonly kills: number
  /** The speed of the simulated clock. */
  readonly speed: number
  /** The numbers that are published. */
  readonly count: number
}

/**
 * Kills a broker again and again while its endpoint is down, until a simulated day has passed. Then the endpoint works
 * again.
 */
export async function runDay({ kills: wanted, speed, count }: DayOptions): Promise<DayReport> {
  const path = testFolder()
  const receiver = await openReceiver()
  const accepted: number[] = []
  const tried: { readonly n: number; readonly atMs: number }[] = []
  let down = true
  receiver.reply = (response, received) => {
    const n = Number(received.body)
    if (down) tried.push({ n, atMs: performance.now() * speed })
    else accepted.push(n)
    answer(down ? 503 : 204, {}, down ? 'down' : '')(response, received)
  }
  const args = [path, receiver.url, String(Date.now()), String(speed), String(count)]
  let kills = 0
  // The second number has attempts when the first one became a dead letter.
  for (; kills < wanted || !tried.some(({ n }) => n > 0); kills++) {
    const child = await start(args)
    await pause(200 + Math.random() * 1_000)
    await kill(child)
  }
  down = false
  const child = await start(args)
  await until(() => accepted.includes(count - 1))
  const answered = once(child, 'message')
  child.send('letters')
  const [letters] = (await answered) as [readonly DeadLetter[]]
  await kill(child)
  const first = tried.filter(({ n }) => n === 0)
  const hours = ((first.at(-1)?.atMs ?? 0) - (first[0]?.atMs ?? 0)) / HOUR_MS
  const attemptsOf: Record<number, number> = {}
  for (const { n } of tried) attemptsOf[n] = (attemptsOf[n] ?? 0) + 1
  return { kills, attempts: tried.length, attemptsOf, hours, letters, accepted }
}

async function start(args: readonly string[]): Promise<ChildProcess> {
  const child = fork(fileURLToPath(new URL('day-main.ts', import.meta.url)), [...args], {
    execArgv: ['--conditions=@signalbox/source'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child, 'message')
  return child
}

async function kill(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
}
