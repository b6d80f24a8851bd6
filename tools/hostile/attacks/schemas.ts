import type { Attack } from '../attack/scene.ts'

type Schema = object

function list<Part>(count: number, part: (index: number) => Part): Part[] {
  return Array.from({ length: count }, (_, index) => part(index))
}

function nested(depth: number): unknown {
  return depth === 0 ? {} : { a: nested(depth - 1) }
}

/** The references that each level follows twice. */
const TWICE = [{ $ref: '#/$defs/n' }, { $ref: '#/$defs/n' }]

/** Schemas that are dear to check, each with as much as its limits allow. */
const SCHEMAS: Readonly<Record<string, Schema>> = {
  items: { items: { type: 'integer', minimum: 0 } },
  alternatives: { items: { anyOf: list(900, (index) => ({ const: `x${index}` })) } },
  one: { items: { oneOf: list(900, () => ({ type: 'boolean' })) } },
  all: { allOf: list(450, () => ({ items: { type: ['string', 'array', 'object', 'number'] } })) },
  lengths: { allOf: list(900, () => ({ maxLength: 300_000 })) },
  values: { items: { enum: list(5_000, (index) => index) } },
  unique: { allOf: list(900, () => ({ uniqueItems: true })) },
  required: { items: { required: list(3_000, (index) => `r${index}`) } },
  additional: { allOf: list(450, () => ({ additionalProperties: { type: ['integer', 'array'] } })) },
  counts: { allOf: list(900, () => ({ minProperties: 1 })) },
  references: { $ref: '#/$defs/n', $defs: { n: { properties: { a: { oneOf: TWICE } } } } },
  wide: { items: { properties: Object.fromEntries(list(450, (index) => [`p${index}`, { type: 'string' }])) } },
  patterns: { items: { allOf: list(60, () => ({ maxLength: 256, pattern: '^(([a-z]+)*)+[0-9]{0,200}$' })) } },
  names: {
    propertyNames: { maxLength: 256 },
    patternProperties: Object.fromEntries(list(60, (index) => [`^(k|(x|y)*)+${index}`, { type: 'string' }])),
  },
}

const VALUES = 30_000

/** Bodies that are dear to read or to check, by name. */
const BODIES: Readonly<Record<string, () => string>> = {
  numbers: () => JSON.stringify(list(VALUES, (index) => 1_000_000 + index)),
  objects: () =>
    `[${Array(VALUES / 2)
      .fill('{}')
      .join()}]`,
  keys: () => JSON.stringify(Object.fromEntries(list(VALUES / 2, (index) => [`k${index}`, 0]))),
  texts: () => JSON.stringify(list(3_900, () => 'a'.repeat(255))),
  emoji: () => JSON.stringify('😀'.repeat(250_000)),
  deep: () => `${'['.repeat(VALUES)}${']'.repeat(VALUES)}`,
  chain: () => JSON.stringify(nested(120)),
  'too many values': () => `[${Array(4_000_000).fill('0').join()}]`,
  'too many bytes': () => JSON.stringify('x'.repeat(9_000_000)),
}

const CHANNEL = 'attack.schema'

/** Schemas of operators, and bodies of strangers, that are dear together: each with each. */
export const hostileSchemas: Attack = {
  name: 'hostile-schemas',
  about: 'schemas that are dear to read or to check, each with bodies that are dear to check',
  prepare(scene) {
    const caller = scene.attacker()
    const headers = { 'content-type': 'application/json' }
    return async () => {
      for (const [name, schema] of Object.entries(SCHEMAS)) {
        const channel = `${CHANNEL}.${name}`
        const entry = { type: 'queues', match: channel, schema: { default: name, versions: { [name]: schema } } }
        const url = `${scene.api}/api/actions/set_channel_settings`
        const set = await scene.single(`the schema ${name}`, () =>
          scene.operator.ask('POST', url, { headers, body: JSON.stringify(entry) }),
        )
        scene.tally.expect(
          set?.text.includes('"revision"') === true,
          `${name} was not written: ${set?.text.slice(0, 300)}`,
        )
        for (const [body, text] of Object.entries(BODIES)) {
          const args = { channel, body: text() }
          await scene.single(`the schema ${name} with ${body}`, () => caller.tool('queue_send', args))
        }
      }
    }
  },
}
