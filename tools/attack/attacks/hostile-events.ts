import type { Attack } from '../attack.ts'
import type { Caller } from '../caller.ts'
import { inParallel } from '../tally.ts'

/** A little below MAX_BODY_BYTES. */
const LARGE = 9_900_000

const HEAD = '"specversion":"1.0","id":"1","source":"/a","type":"t","subject":"attack.ce"'

function event(members: string): string {
  return `{${HEAD}${members}}`
}

interface Hostile {
  readonly name: string
  readonly type: string
  readonly body: string
  /** True if the server must refuse the event. */
  readonly refused: boolean
}

const STRUCTURED = 'application/cloudevents+json'
const BATCH = 'application/cloudevents-batch+json'

function attributes(count: number): string {
  return Array.from({ length: count }, (_, index) => `,"a${index}":"x"`).join('')
}

function repeatTo(bytes: number, text: string, glue = ''): string {
  return Array.from({ length: Math.floor(bytes / (text.length + glue.length)) }, () => text).join(glue)
}

function hostilities(large: number): readonly Hostile[] {
  const levels = Math.floor(large / 12)
  const minimal = '{"specversion":"1.0","id":"1","source":"/","type":"t","subject":"attack.ce"}'
  return [
    {
      name: 'deep data',
      type: STRUCTURED,
      body: event(`,"data":${'['.repeat(levels)}${']'.repeat(levels)}`),
      refused: true,
    },
    {
      name: 'deep objects',
      type: STRUCTURED,
      body: event(`,"data":${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`),
      refused: true,
    },
    { name: 'deep and open', type: STRUCTURED, body: `{"data":${'['.repeat(large)}`, refused: true },
    {
      name: 'deep attribute',
      type: STRUCTURED,
      body: event(`,"ext":${'['.repeat(levels)}${']'.repeat(levels)}`),
      refused: true,
    },
    { name: '1,000 attributes', type: STRUCTURED, body: event(attributes(1_000)), refused: true },
    {
      name: 'attributes without end',
      type: STRUCTURED,
      body: event(attributes(Math.floor(large / 16))),
      refused: true,
    },
    {
      name: 'keys without end',
      type: STRUCTURED,
      body: event(`,"data":{"k":0${attributes(Math.floor(large / 16))}}`),
      refused: true,
    },
    { name: 'one key again and again', type: STRUCTURED, body: event(repeatTo(large, ',"a":1')), refused: true },
    { name: 'a long array', type: STRUCTURED, body: event(`,"data":[${repeatTo(large, '1', ',')}]`), refused: false },
    { name: 'empty objects', type: STRUCTURED, body: event(`,"data":[${repeatTo(large, '{}', ',')}]`), refused: false },
    { name: 'escapes', type: STRUCTURED, body: event(`,"data":"${repeatTo(large, '\\u0041')}"`), refused: false },
    { name: 'base64', type: STRUCTURED, body: event(`,"data_base64":"${'A'.repeat(large)}!"`), refused: true },
    { name: 'a huge batch', type: BATCH, body: `[${repeatTo(large, minimal, ',')}]`, refused: true },
    { name: 'a batch of nothing', type: BATCH, body: `[${repeatTo(large, '0', ',')}]`, refused: true },
    { name: 'a deep batch', type: BATCH, body: `${'['.repeat(levels)}${']'.repeat(levels)}`, refused: true },
  ]
}

export const hostileEvents: Attack = {
  name: 'hostile-events',
  about:
    'CloudEvents with deep nesting, endless attributes or keys, and huge batches; also from a caller without permissions',
  async prepare(scene) {
    const bodies = hostilities(scene.scaled(LARGE, 2_000_000))
    const callers: readonly Caller[] = scene.guarded ? [scene.attacker(), scene.nobody] : [scene.attacker()]
    return async () => {
      for (const caller of callers) {
        for (const { name, type, body, refused } of bodies) {
          await inParallel(2, 2, async (index) => {
            const path = index % 2 === 0 ? '/ce/send/event' : '/ce/queue/send'
            const asked = caller.ask('POST', path, { headers: { 'content-type': type }, body })
            const answer = await scene.tally.of(asked)
            const { status = 0 } = answer ?? {}
            scene.tally.expect(!refused || status >= 400, `${name}: answered with ${status}`)
            scene.tally.expect(
              caller !== scene.nobody || status >= 400,
              `${name}: ${status} for a caller without permission`,
            )
          })
        }
      }
    }
  },
}
