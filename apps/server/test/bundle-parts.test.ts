import type { Plugin } from 'rolldown'
import { build } from 'rolldown'
import { expect, test } from 'vitest'

import { partsOf } from '../scripts/bundle-parts.ts'

/** Each uses its imports, so that none is dropped. */
const MODULES: Readonly<Record<string, string>> = {
  main: `console.log(import('server'), import('command'))`,
  server: `import { a } from 'routes'; import { b } from 'errors'; console.log(a, b, import('webhooks'))`,
  routes: `import { b } from 'errors'; export const a = [b]`,
  webhooks: `import { a } from 'routes'; console.log('webhooks', a)`,
  command: `console.log(import('send'), import('backup'))`,
  send: `import { b } from 'errors'; console.log('send', b)`,
  backup: `import { a } from 'routes'; console.log('backup', a)`,
  errors: `export const b = Symbol('error')`,
}

const inMemory: Plugin = {
  name: 'in-memory',
  resolveId: (id) => (id in MODULES ? id : null),
  load: (id) => MODULES[id] ?? null,
}

async function parts(except: readonly string[]) {
  const { output } = await build({ input: 'main', plugins: [inMemory], write: false })
  const found = partsOf(output, {
    steps: [{ part: 'server', modules: ['server'] }],
    apart: [{ part: 'common', module: 'command', except }],
  })
  return Object.fromEntries(found)
}

test('bundle - modules that a start loads are in its part, and those that commands load too in a part of their own', async () => {
  expect(await parts(['backup'])).toEqual({ server: 'server', routes: 'server', errors: 'common' })
})

test('bundle - commands load no code that only the server needs', async () => {
  expect(await parts([])).toEqual({ server: 'server', routes: 'common', errors: 'common' })
})

test('bundle - a module that is not in the bundle is an error', async () => {
  const { output } = await build({ input: 'main', plugins: [inMemory], write: false })
  const options = { steps: [{ part: 'server', modules: ['gone'] }], apart: [] }
  expect(() => partsOf(output, options)).toThrow('the bundle does not contain gone')
})
