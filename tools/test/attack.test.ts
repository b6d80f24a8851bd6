import { expect, test } from 'vitest'

import { comparison, figuresOf, lateTimes, memoryProblem } from '../hostile/attack/report.ts'
import { attack } from '../hostile/attack/run.ts'
import type { Attack } from '../hostile/attack/scene.ts'
import { ATTACKS } from '../hostile/attacks/index.ts'
import { rebinding } from '../hostile/attacks/inputs.ts'

/** Other tests run at the same time: times are not judged. */
const QUICK = { quick: true, repeat: false, log: () => {} }

/** The report of one attack, for all tests. */
let reports: ReturnType<typeof attack> | undefined

async function attackOnce() {
  reports ??= attack({ attacks: [rebinding], engines: ['embedded'], kinds: ['guarded'], ...QUICK })
  return (await reports)[0]
}

test('attack - the tool attacks a server, and the other caller is served', async () => {
  const report = await attackOnce()
  expect(report?.problems, report && figuresOf(report)).toEqual([])
  expect(report?.lives).toBe(true)
  expect(report?.honest.requests).toBeGreaterThan(0)
  expect(report?.got).toContain('403')
})

test('attack - a server that dies, and an attack that exceeds a limit, are problems', async () => {
  const deadly: Attack = {
    name: 'deadly',
    about: 'is served, and ends the server',
    prepare: (scene) => async () => {
      const answer = await scene.tally.of(scene.attacker().tool('queue_send', { channel: 'attack', body: 'x' }))
      scene.tally.expect(answer?.status !== 200, 'it was served')
      await scene.process.kill()
    },
  }
  const [report] = await attack({ attacks: [deadly], engines: ['embedded'], kinds: ['default'], ...QUICK })
  expect(report?.lives).toBe(false)
  expect(report?.problems[0]).toBe('it was served')
  expect(report?.problems[1]).toContain('the process died')
  expect(new Set(ATTACKS.map(({ name }) => name)).size).toBe(ATTACKS.length)
})

test('attack - times and memory beyond the criteria are reported, and two results are compared', async () => {
  const report = await attackOnce()
  if (report === undefined) throw new Error('no report')
  const figures = (p99Ms: number) => ({ ...report.honest, p99Ms })
  const held = { alone: figures(4), honest: figures(19), watched: { ...report.watched, turnMs: 99 } }
  expect(lateTimes(held)).toEqual([])
  const late = { alone: figures(30), honest: figures(61), watched: { ...report.watched, turnMs: 101 } }
  expect(lateTimes(late)).toEqual([
    'a tick of the event loop took 101 ms of CPU, and 100 are allowed',
    "the other caller's p99 was 61 ms, and 60 are allowed",
  ])
  expect(memoryProblem(900 * 2 ** 20)).toBeUndefined()
  expect(memoryProblem(901 * 2 ** 20)).toBe('the server used 901 MB, and 900 are allowed')
  const results = (commit: string, one: typeof report) => ({ commit, at: '', quick: true, reports: [one] })
  const before = { ...report, ...late, problems: [], late: lateTimes(late) }
  const table = comparison(results('a', before), results('b', { ...report, ...held, problems: [], late: [] }))
  expect(table).toContain('| embedded | guarded | rebinding | 101 → 99 |')
  expect(table).toContain('| late → held |')
})
