import { expect, test } from 'vitest'

import { listPage } from '../src/http/agent-list.ts'
import { ALICE, card, openBench } from './registry-bench.ts'
import type { Answer, RegistryServer } from './registry-server.ts'
import { openServer } from './registry-server.ts'

const MAX_PAGE_BYTES = 4 * 1024 * 1024

function idsOf({ body }: Answer): readonly string[] {
  return body.map(({ agent_id }: { agent_id: string }) => agent_id)
}

const tagged = (id: string, tag: string) => card(id, { skills: [{ id: 's', name: 'S', tags: [tag] }] })

/** Every page, by the links that the pages carry. */
async function pagesFrom(call: RegistryServer['call'], path: string): Promise<readonly Answer[]> {
  const pages: Answer[] = []
  for (let next: string | undefined = path; next !== undefined;) {
    const page: Answer = await call(`GET ${next}`)
    expect(page.status).toBe(200)
    pages.push(page)
    next = /^<(.*)>; rel="next"$/.exec(page.headers.get('link') ?? '')?.[1]
  }
  return pages
}

test('R3 - lists: GET /agents is cut at 4 MiB, and Link leads to the rest', async () => {
  const { call, registry } = await openServer()
  const ids = Array.from({ length: 150 }, (_, i) => `agent-${i}`).sort()
  await Promise.all(ids.map((id) => registry.register(card(id, { metadata: { x: 'x'.repeat(60_000) } }), ALICE)))
  const pages = await pagesFrom(call, '/agents')
  expect(pages.flatMap(idsOf)).toEqual(ids)
  expect(pages).toHaveLength(3)
  for (const { text } of pages) expect(text.length).toBeLessThanOrEqual(MAX_PAGE_BYTES)
})

test('R3 - lists: limit and cursor page through the agents of any of the tags', async () => {
  const { call, registry } = await openServer()
  for (const [id, tag] of [
    ['a1', 'x y'],
    ['b2', 'none'],
    ['c3', 'z'],
    ['d4', 'x y'],
    ['e5', 'z'],
  ] as const) {
    await registry.register(tagged(id, tag), ALICE)
  }
  const pages = await pagesFrom(call, '/agents?skill_tags=x+y,z&limit=2')
  expect(pages.map(idsOf)).toEqual([
    ['a1', 'c3'],
    ['d4', 'e5'],
  ])
  expect(pages[0]?.headers.get('link')).toBe('</agents?skill_tags=x+y%2Cz&limit=2&cursor=c3>; rel="next"')
  expect(idsOf(await call('GET /agents?cursor=b2'))).toEqual(['c3', 'd4', 'e5'])
  // The agent that a page ended with may be gone by now.
  await registry.deregister('c3', ALICE)
  expect(idsOf(await call('GET /agents?cursor=c3&limit=1'))).toEqual(['d4'])
  expect(idsOf(await call('GET /agents?cursor=zz'))).toEqual([])
  expect((await call('GET /agents?cursor=Not+an+id')).body.details).toEqual([
    { parameter: 'cursor', given: '"Not an id"', allowed: 'the last agent_id of the previous page' },
  ])
})

test('R3 - lists: a long one is serialized a piece at a time', async () => {
  const { node } = await openBench()
  const registry = await node()
  for (let n = 0; n < 40; n++) await registry.register(card(`large-${n}`, { fill: 'x'.repeat(60_000) }), ALICE)
  const everything = { skillTags: [], limit: 100, after: undefined }
  expect([...listPage(registry, everything, () => true)].length).toBeGreaterThan(5)
})
