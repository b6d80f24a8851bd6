import type { ChannelType } from '@signalbox/broker-core'

import type { EdgeCounts, EdgeEnds } from './edge-table.ts'

export const COLUMNS = ['left', 'middle', 'right'] as const

type Column = (typeof COLUMNS)[number]

export const NODE_KINDS = ['caller', 'channel', 'agent', 'receiver', 'webhook', 'more'] as const

/** A node of the map. */
export interface MapNode {
  readonly id: string
  readonly column: Column
  readonly kind: (typeof NODE_KINDS)[number]
  readonly name: string
  readonly type?: ChannelType
  /** Of the kind `more`: the number of nodes in it. */
  readonly nodes?: number
}

export interface MapEdge extends EdgeCounts {
  readonly from: string
  readonly to: string
}

/** The busiest nodes of each column, and the edges between them. */
export interface BusiestMap {
  readonly nodes: readonly MapNode[]
  readonly edges: readonly MapEdge[]
}

/**
 * Returns the busiest nodes of each column, at most `limit`, with every edge: the other nodes of a column are one node
 * of the kind `more`, to which their edges lead.
 */
export function busiest(edges: readonly (EdgeEnds & EdgeCounts)[], limit: number): BusiestMap {
  const ends = edges.map((edge) => ({ edge, ...endsOf(edge) }))
  const weights = new Map<string, { readonly node: MapNode; weight: number }>()
  for (const { edge, from, to } of ends) {
    for (const node of [from, to]) {
      const known = weights.get(node.id)
      const weight = edge.messages + edge.errors
      if (known === undefined) weights.set(node.id, { node, weight })
      else known.weight += weight
    }
  }
  const ranked = [...weights.values()].toSorted((a, b) => b.weight - a.weight || byName(a.node.id, b.node.id))
  const nodes: MapNode[] = []
  const left = new Map<string, MapNode>()
  for (const column of COLUMNS) {
    const ofColumn = ranked.filter(({ node }) => node.column === column)
    nodes.push(...ofColumn.slice(0, limit).map(({ node }) => node))
    const rest = ofColumn.slice(limit)
    if (rest.length === 0) continue
    const more: MapNode = { id: `more/${column}`, column, kind: 'more', name: '', nodes: rest.length }
    nodes.push(more)
    for (const { node } of rest) left.set(node.id, more)
  }
  const merged = new Map<string, MapEdge>()
  for (const { edge, from, to } of ends) {
    const [fromId, toId] = [from, to].map(({ id }) => left.get(id)?.id ?? id)
    if (fromId === undefined || toId === undefined) continue
    const key = JSON.stringify([fromId, toId])
    let sum = merged.get(key)
    if (sum === undefined)
      merged.set(key, (sum = { from: fromId, to: toId, messages: 0, errors: 0, timed: 0, seconds: 0 }))
    sum.messages += edge.messages
    sum.errors += edge.errors
    sum.timed += edge.timed
    sum.seconds += edge.seconds
  }
  const order = (a: MapEdge, b: MapEdge): number =>
    b.messages - a.messages || b.errors - a.errors || byName(a.from, b.from) || byName(a.to, b.to)
  return { nodes, edges: [...merged.values()].toSorted(order) }
}

function byName(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** Returns the nodes of an edge, in the direction of its messages. */
function endsOf({ relation, type, name, party }: EdgeEnds): { readonly from: MapNode; readonly to: MapNode } {
  const middle: MapNode =
    type === 'agents'
      ? { id: `agents/${name}`, column: 'middle', kind: 'agent', name }
      : { id: `${type}/${name}`, column: 'middle', kind: 'channel', name, type }
  if (relation === 'send')
    return { from: { id: `callers/${party}`, column: 'left', kind: 'caller', name: party }, to: middle }
  const kind = relation === 'push' ? 'webhook' : 'receiver'
  return { from: middle, to: { id: `${kind}s/${party}`, column: 'right', kind, name: party } }
}
