import { argument, isoTime } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

import { defineManagementRoute, STRICT } from '../operation.ts'
import type { Operation } from '../operation.ts'
import type { SettingStatus } from '../ports.ts'

const unknownOfOthers = <Value extends Type.TSchema>(value: Value) =>
  Type.Union([value, Type.Null()], { description: 'Null for another node: ask it.' })

const nodesRoute = defineManagementRoute({
  name: '/api/nodes',
  summary: 'The node that answers, and the other nodes of the cluster that it hears.',
  input: Type.Object({}, STRICT),
  output: Type.Object({
    items: Type.Array(
      Type.Object({
        id: Type.Union([Type.String(), Type.Null()], {
          description:
            'The id of another node in its messages, which changes with each start; null for the node that answers.',
        }),
        node: Type.String({ description: 'The host name; empty for a node of an older version.' }),
        version: Type.String({ description: 'Empty for a node of an older version.' }),
        answers: Type.Boolean({ description: 'True for the node that answers, which is the first.' }),
        engine: Type.String(),
        ready: unknownOfOthers(Type.Boolean()),
        healthy: unknownOfOthers(Type.Boolean()),
        uptime_seconds: unknownOfOthers(Type.Number({ minimum: 0 })),
        last_seen: Type.String({
          description: 'The last message of the node, ISO 8601. A node that is silent for 7 s is left out.',
        }),
      }),
    ),
  }),
  async run(_query, { environment, services }) {
    const { node, version, engine, ready, healthy, uptime_seconds } = await environment.node()
    const others = services.broker
      .otherNodes()
      .toSorted((a, b) => (a.name < b.name || (a.name === b.name && a.id < b.id) ? -1 : 1))
    return {
      items: [
        {
          id: null,
          node,
          version,
          answers: true,
          engine,
          ready,
          healthy,
          uptime_seconds,
          last_seen: isoTime(Date.now()),
        },
        ...others.map((other) => ({
          id: other.id,
          node: other.name,
          version: other.version,
          answers: false,
          engine,
          ready: null,
          healthy: null,
          uptime_seconds: null,
          last_seen: isoTime(other.lastSeen),
        })),
      ],
    }
  },
})

const configRoute = defineManagementRoute({
  name: '/api/config',
  summary: 'The effective configuration, by the keys of the configuration file; secrets are masked.',
  input: Type.Object({}, STRICT),
  output: Type.Unsafe<object>({ type: 'object' }),
  run: (_query, { environment }) => environment.config(),
})

const value = (description: string) =>
  Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Array(Type.String())], { description })

const settingsRoute = defineManagementRoute({
  name: '/api/settings',
  summary: 'Every setting with its effective value and the source of the value; secrets are hidden.',
  input: Type.Object({}, STRICT),
  output: Type.Object({
    items: Type.Array(
      Type.Object({
        key: Type.String({ description: 'The name in the configuration file.' }),
        env: Type.String({ description: 'The environment variable.' }),
        group: Type.String({ description: 'The heading of the setting in the documentation.' }),
        value: value('The effective value; `[hidden]` for a secret.'),
        default: value('The default.'),
        origin: Type.Unsafe<SettingStatus['origin']>({
          type: 'string',
          enum: ['default', 'file', 'environment', 'flag', 'program'],
          description: 'The source of the value. program: the program that started the server.',
        }),
        origin_detail: Type.String({ description: 'The source with its name, such as `environment HTTP_PORT`.' }),
        description: Type.String(),
        allowed: Type.String({ description: 'The allowed values, in words.' }),
        documentation: Type.String({ description: 'The address of the documentation of the setting.' }),
      }),
    ),
  }),
  run: (_query, { environment }) => ({ items: environment.settings().map(shown) }),
})

function shown({ value: effective, default: normal, ...setting }: SettingStatus) {
  return { ...setting, value: copied(effective), default: copied(normal) }
}

function copied(given: SettingStatus['value']): string | number | boolean | string[] {
  return typeof given === 'object' ? [...given] : given
}

/** The most rules in the answer, which is the most that a table can have. */
const MAX_RULES = 1_000

const routingRoute = defineManagementRoute({
  name: '/api/routing',
  summary: 'The routing table that is in force on this node.',
  input: Type.Object({}, STRICT),
  output: Type.Object({
    rules: Type.Array(
      Type.Object({
        index: Type.Integer({ minimum: 0, description: 'The position in the table; the first rule is 0.' }),
        key: Type.String({ description: 'The condition.' }),
        key_type: Type.Unsafe<'regex' | 'cesql'>({
          type: 'string',
          enum: ['regex', 'cesql'],
          description:
            'regex: the key must match the whole name of the channel. cesql: the key is a CESQL expression for the attributes of the message.',
        }),
        targets: Type.Array(
          Type.Object({
            type: argument.channelType('The type of the target.'),
            channel: Type.String({ description: 'The name of the target, which can contain attributes in braces.' }),
          }),
        ),
      }),
      { description: 'Empty without a routing table.', maxItems: MAX_RULES },
    ),
  }),
  run(_query, { services }) {
    const rules = services.routing?.table.rules ?? []
    return {
      rules: rules.map(({ index, key, keyType, targets }) => ({
        index,
        key,
        key_type: keyType,
        targets: targets.map(({ type, channel }) => ({ type, channel: channel.source })),
      })),
    }
  },
})

export const nodeOperations: readonly Operation[] = [nodesRoute, configRoute, settingsRoute, routingRoute]
