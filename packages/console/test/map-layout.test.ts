import { expect, test } from 'vitest'

import { nextRows, NO_ROWS, placed } from '../src/page/screens/map/layout.ts'
import type { MapData, MapNode, Rows } from '../src/page/screens/map/layout.ts'

function queue(name: string): MapNode {
  return { id: `queues/${name}`, column: 'middle', kind: 'channel', type: 'queues', name }
}

const AGENT: MapNode = { id: 'agents/a', column: 'middle', kind: 'agent', name: 'a' }
const MORE: MapNode = { id: 'more/middle', column: 'middle', kind: 'more', name: '', nodes: 3 }

function namesOf({ middle }: Rows): readonly (string | undefined)[] {
  return middle.map((node) => node?.name)
}

test('console - nodes of the map are in the order of kind and name at first, whichever is the busiest', () => {
  expect(namesOf(nextRows(NO_ROWS, [queue('z'), AGENT, MORE, queue('b')]))).toEqual(['b', 'z', 'a'])
})

test('console - a node of the map keeps its row, and a new one takes the first free row', () => {
  const first = nextRows(NO_ROWS, ['b', 'd', 'f'].map(queue))
  const left = nextRows(first, ['f', 'b'].map(queue))
  expect(namesOf(left)).toEqual(['b', undefined, 'f'])
  const back = nextRows(left, ['a', 'b', 'c', 'f'].map(queue))
  expect(namesOf(back)).toEqual(['b', 'a', 'f', 'c'])
  expect(namesOf(nextRows(back, [queue('a')]))).toEqual([undefined, 'a'])
  // The same answer again changes nothing.
  expect(nextRows(back, ['a', 'b', 'c', 'f'].map(queue))).toEqual(back)
})

test('console - a node of the map that has the focus stays without traffic', () => {
  const first = nextRows(NO_ROWS, ['b', 'd'].map(queue))
  expect(namesOf(nextRows(first, [queue('e')], 'queues/d'))).toEqual(['e', 'd'])
})

test('console - the places of nodes on the map depend on their rows, and not on their edges', () => {
  const caller: MapNode = { id: 'callers/c', column: 'left', kind: 'caller', name: 'c' }
  const edge = { from: caller.id, to: 'queues/b', messages: 1, errors: 0, latency_seconds: null }
  const other = { ...edge, to: 'queues/d' }
  const nodes = [caller, queue('b'), queue('d'), MORE]
  const data: MapData = {
    node: 'n1',
    start: '',
    seconds: 60,
    nodes,
    edges: [edge],
    total_edges: 1,
    others: { messages: 0, errors: 0 },
  }
  const rows = nextRows(NO_ROWS, nodes)
  const one = placed(rows, data, 1_000, true)
  const two = placed(rows, { ...data, edges: [other, edge] }, 1_000, true)
  expect(two.columns).toEqual(one.columns)
  expect(one.columns.middle.map(({ node }) => node.id)).toEqual(['queues/b', 'queues/d', 'more/middle'])
  // Edges leave a node in the order of the nodes that they lead to, without a crossing.
  const [toLower, toUpper] = two.edges
  expect(toUpper?.from.y).toBeLessThan(toLower?.from.y ?? 0)
  // No node is outside the picture.
  for (const { x, width } of Object.values(placed(rows, data, 358, false).columns).flat()) {
    expect(x).toBeGreaterThanOrEqual(0)
    expect(x + width).toBeLessThanOrEqual(358)
  }
})
