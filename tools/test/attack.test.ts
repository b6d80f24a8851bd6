import { expect, test } from 'vitest'

import type { Attack } from '../attack/attack.ts'
import { ATTACKS } from '../attack/attacks/index.ts'
import { rebinding } from '../attack/attacks/rebinding.ts'
import { figuresOf } from '../attack/report.ts'
import { attack } from '../attack/run.ts'

/** Other tests run at the same time: times are not judged. */
const QUICK = { quick: true, repeat: false, log: () => {} }

test('attack - the tool attacks a server, and the other caller is served', async () => {
  const [report] = await attack({ attacks: [rebinding], engines: ['embedded'], kinds: ['guarded'], ...QUICK })
  expect(report?.problems, report && figuresOf(report)).toEqual([])
  expect(report?.lives).toBe(true)
  expect(report?.honest.requests).toBeGreaterThan(0)
  expect(report?.got).toContain('403')
})

test('attack - a server that dies, and an attack that exceeds a limit, are problems', async () => {
  const deadly: Attack = {
    name: 'deadly',
    about: 'is served, and ends the server',
    prepare: (scene) =>
      Promise.resolve(async () => {
        const answer = await scene.tally.of(scene.attacker().tool('queue_send', { channel: 'attack', body: 'x' }))
        scene.tally.expect(answer?.status !== 200, 'it was served')
        await scene.process.kill()
      }),
  }
  const [report] = await attack({ attacks: [deadly], engines: ['embedded'], kinds: ['default'], ...QUICK })
  expect(report?.lives).toBe(false)
  expect(report?.problems[0]).toBe('it was served')
  expect(report?.problems[1]).toContain('the process died')
  expect(new Set(ATTACKS.map(({ name }) => name)).size).toBe(ATTACKS.length)
})
