import { CHANNEL_TYPES } from '@signalbox/broker-core'
import { isoTime } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

import { defineManagementRoute, STRICT } from '../operation.ts'
import type { Operation } from '../operation.ts'
import { busiest, COLUMNS, NODE_KINDS } from './busiest.ts'
import type { EdgeEnds } from './edge-table.ts'

/** The nodes of each column in an answer. */
const DEFAULT_NODES = 25
const MAX_NODES = 200

const count = (description: string) => Type.Integer({ minimum: 0, description })

const mapRoute = defineManagementRoute({
  name: '/api/map',
  summary:
    'The traffic of this node between callers, channels, agents, receivers and webhooks, in the last minute or hour.',
  input: Type.Object(
    {
      window: Type.Optional(
        Type.Union([Type.Literal('minute'), Type.Literal('hour')], {
          description: 'The time that is counted: the last minute or the last hour.',
          default: 'minute',
        }),
      ),
      nodes: Type.Optional(
        Type.Integer({
          description: 'The most nodes of each column. The others of a column are one node of the kind `more`.',
          minimum: 1,
          maximum: MAX_NODES,
          default: DEFAULT_NODES,
        }),
      ),
      client: Type.Optional(
        Type.String({ description: 'Only the traffic of this client.', minLength: 1, maxLength: 512 }),
      ),
      search: Type.Optional(
        Type.String({
          description:
            'Only edges with this text in a ClientID, a channel, an agent_id, or the id or the host of a webhook.',
          maxLength: 512,
        }),
      ),
    },
    STRICT,
  ),
  output: Type.Object({
    node: Type.String({ description: 'The node that answers. Each node counts only its traffic.' }),
    start: Type.String({ description: 'The time since which the answer counts, ISO 8601.' }),
    seconds: Type.Number({ minimum: 0, description: 'The time that is counted. Divide by it for a rate.' }),
    nodes: Type.Array(
      Type.Object({
        id: Type.String({ description: 'The end of an edge.' }),
        column: Type.Enum([...COLUMNS], {
          description: 'left: callers. middle: channels and agents. right: receivers and webhooks.',
        }),
        kind: Type.Enum([...NODE_KINDS], { description: 'more: the other nodes of a column together.' }),
        name: Type.String({
          description: 'The ClientID, the channel, the agent_id, or the id of the webhook subscription.',
        }),
        type: Type.Optional(Type.Enum([...CHANNEL_TYPES], { description: 'The type of a channel.' })),
        nodes: Type.Optional(count('The number of nodes that a node of the kind `more` stands for.')),
        endpoint_host: Type.Optional(
          Type.String({ description: 'The host and port of the endpoint of a webhook subscription that exists.' }),
        ),
      }),
      { description: 'The busiest nodes of each column first.' },
    ),
    edges: Type.Array(
      Type.Object({
        from: Type.String({ description: 'The id of a node. Messages pass from it.' }),
        to: Type.String({ description: 'The id of a node. Messages pass to it.' }),
        messages: count('Messages, requests to agents, or attempts to deliver to a webhook.'),
        errors: count('Failed calls, rejected requests, or failed attempts.'),
        latency_seconds: Type.Union([Type.Number({ minimum: 0 }), Type.Null()], {
          description:
            'The mean time. From a caller: until the answer. To a receiver: in the queue, or until its answer. To a webhook: the attempt. Null if it is not known.',
        }),
      }),
      { description: 'The busiest edges first. Only edges with traffic in the window.' },
    ),
    total_edges: count('The edges that match, each counted alone.'),
    others: Type.Object(
      { messages: count('Messages.'), errors: count('Errors.') },
      { description: 'The traffic of edges that are not listed because too many are active: more than 10,000.' },
    ),
  }),
  async run({ window = 'minute', nodes: limit = DEFAULT_NODES, client, search = '' }, { environment, services }) {
    const { map, history } = environment
    const hosts = new Map(services.webhooks?.list().map(({ id, endpoint }) => [id, new URL(endpoint).host]))
    const wanted = search.toLowerCase()
    const matching = map.edges.list(window).filter((edge) => isOf(client, edge) && hasText(wanted, edge, hosts))
    const { nodes, edges } = busiest(matching, limit)
    const start = Math.max(map.since, map.edges.firstStep(window) * history.stepMs)
    const others = map.edges.others.sum(window)
    const { node } = await environment.node()
    return {
      node,
      start: isoTime(start),
      // A rate of a node that has just started would be far too high.
      seconds: Math.max(1, (Date.now() - start) / 1000),
      nodes: nodes.map(({ id, column, kind, name, type, nodes: more }) => {
        const host = kind === 'webhook' ? hosts.get(name) : undefined
        return { id, column, kind, name, type, nodes: more, endpoint_host: host }
      }),
      edges: edges.map(({ from, to, messages, errors, timed, seconds }) => ({
        from,
        to,
        messages,
        errors,
        latency_seconds: timed === 0 ? null : Number((seconds / timed).toPrecision(6)),
      })),
      total_edges: matching.length,
      others: { messages: others.messages, errors: others.errors },
    }
  },
})

export const mapOperations: readonly Operation[] = [mapRoute]

function isOf(client: string | undefined, { relation, party }: EdgeEnds): boolean {
  return client === undefined || (relation !== 'push' && party === client)
}

function hasText(wanted: string, { relation, name, party }: EdgeEnds, hosts: ReadonlyMap<string, string>): boolean {
  const texts = relation === 'push' ? [name, party, hosts.get(party) ?? ''] : [name, party]
  return texts.some((text) => text.toLowerCase().includes(wanted))
}
