import {
  Authorization,
  channelNameProblem,
  isReservedChannel,
  POLICY_ACTIONS,
  RESERVED_PREFIX,
  RESOURCE_TYPES,
  subscriptionPatternProblem,
} from '@signalbox/broker-core'
import type { Policy, PolicyAction, ResourceType } from '@signalbox/broker-core'
import { isWildcardPattern, ruleText, shownText } from '@signalbox/broker-core/internal'
import { hasRole, ROLES } from '@signalbox/http-kit'
import { isoTime } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'
import type { Static } from 'typebox'

import { invalidParameters } from '../errors.ts'
import { defineManagementRoute, STRICT } from '../operation.ts'
import type { Operation } from '../operation.ts'
import type { ReloadFailure } from '../ports.ts'

const since = Type.String({ description: 'The time since which they are in force on this node, ISO 8601.' })

const failure = Type.Union([Type.Object({ time: Type.String(), reason: Type.String() }), Type.Null()], {
  description: 'The last reload, if it failed: the previous ones remain in force. Otherwise null.',
})

const listener = Type.Object({
  authentication: Type.Boolean({ description: 'True if the listener requires a token.' }),
  tls: Type.Boolean(),
  mutual_tls: Type.Boolean({ description: 'True if clients must present a certificate.' }),
})

const securityRoute = defineManagementRoute({
  name: '/api/security',
  summary: 'The authentication and the policy that are in force on this node, and since when.',
  input: Type.Object({}, STRICT),
  output: Type.Object({
    shared: listener,
    management: listener,
    keys: Type.Union(
      [
        Type.Object({
          source: Type.String({ description: 'The setting that names the keys, such as `authentication.jwksUrl`.' }),
          algorithms: Type.Array(Type.String(), {
            description: 'If empty, the server accepts the algorithms that fit the keys.',
          }),
          issuer: Type.String({ description: 'The required issuer; empty for any.' }),
          audience: Type.Array(Type.String(), { description: 'The allowed audiences; empty for any.' }),
          oauth: Type.Boolean({ description: 'True if the scopes of a token restrict its caller.' }),
          since,
          failure,
        }),
        Type.Null(),
      ],
      { description: 'The keys that verify tokens; null if no listener requires a token.' },
    ),
    policy: Type.Union(
      [
        Type.Object({
          file: Type.String(),
          rules: Type.Integer({ minimum: 0, description: 'The number of its rules.' }),
          since,
          failure,
        }),
        Type.Null(),
      ],
      { description: 'The policy of the shared listener; null if every caller may do everything.' },
    ),
  }),
  run(_query, { environment, services }) {
    const { authentication, policy, tls } = environment.security()
    const { keySource: source, algorithms, issuer, audience, oauth } = authentication
    const ofListener = (name: 'shared' | 'management') => ({
      authentication: authentication[name],
      tls: tls[name].enabled,
      mutual_tls: tls[name].mutual,
    })
    return {
      shared: ofListener('shared'),
      management: ofListener('management'),
      keys:
        source === undefined
          ? null
          : {
              source,
              algorithms: [...algorithms],
              issuer,
              audience: [...audience],
              oauth,
              since: isoTime(authentication.since),
              failure: shownFailure(authentication.failure),
            },
      policy:
        policy === undefined
          ? null
          : {
              file: policy.file,
              rules: services.authorization?.policy.rules.length ?? 0,
              since: isoTime(policy.since),
              failure: shownFailure(policy.failure),
            },
    }
  },
})

function shownFailure(reload: ReloadFailure | undefined): { time: string; reason: string } | null {
  return reload === undefined ? null : { time: isoTime(reload.at), reason: reload.reason }
}

const texts = Type.Array(Type.String())

const decisionData = Type.Object({
  allowed: Type.Boolean(),
  decided_by: Type.Unsafe<'rule' | 'no_rule' | 'no_policy' | 'reserved'>({
    type: 'string',
    enum: ['rule', 'no_rule', 'no_policy', 'reserved'],
    description:
      'rule: the first rule that matches. no_rule: no rule matches, so the call is denied. no_policy: there is no policy, so every call is allowed. reserved: the channel belongs to the broker.',
  }),
  reason: Type.String({ description: 'The decision in words.' }),
  rule: Type.Union(
    [
      Type.Object({
        index: Type.Integer({ minimum: 0, description: 'The position in the policy; the first rule is 0.' }),
        clients: texts,
        actions: texts,
        patterns: texts,
        channels: texts,
        effect: Type.String({ description: 'allow or deny.' }),
      }),
      Type.Null(),
    ],
    { description: 'The rule that decides; null if none does.' },
  ),
})

const policyTestQuery = Type.Object(
  {
    client: Type.String({ description: 'The ClientID of the caller.', minLength: 1, maxLength: 512 }),
    action: Type.Unsafe<PolicyAction>({ type: 'string', enum: [...POLICY_ACTIONS], description: 'The action.' }),
    pattern: Type.Unsafe<ResourceType>({
      type: 'string',
      enum: [...RESOURCE_TYPES],
      description: 'The channel type, or agents.',
    }),
    channel: Type.String({
      description: 'The channel, or the agent_id; for subscribe also a pattern with wildcards.',
      minLength: 1,
      maxLength: 512,
    }),
  },
  STRICT,
)

type PolicyTest = Static<typeof policyTestQuery>

const policyTestRoute = defineManagementRoute({
  name: '/api/policy/test',
  summary: 'Reports whether the policy in force lets a caller act on a channel, and the rule that decides.',
  input: policyTestQuery,
  output: decisionData,
  run(test, { services }) {
    checkChannel(test)
    return decide(services.authorization?.policy, test)
  },
})

/** @throws ManagementError PARAMETER_INVALID for a name that no channel can have */
function checkChannel({ action, channel, pattern }: PolicyTest): void {
  if (pattern === 'agents' || isReservedChannel(channel)) return
  const problem =
    action === 'subscribe' && isWildcardPattern(channel)
      ? subscriptionPatternProblem(channel)
      : channelNameProblem(channel)
  if (problem === undefined) return
  const allowed = `the name of a channel, or for subscribe a pattern (${problem})`
  throw invalidParameters([{ parameter: 'channel', given: shownText(channel), allowed }])
}

/** Decides without the caches of the policy in force, which are for real callers. */
function decide(policy: Policy | undefined, test: PolicyTest): Static<typeof decisionData> {
  const { action, channel, client, pattern } = test
  if (pattern !== 'agents' && isReservedChannel(channel)) {
    const reason = `channels beginning with ${RESERVED_PREFIX} belong to the broker`
    return { allowed: false, decided_by: 'reserved', reason, rule: null }
  }
  if (policy === undefined) {
    const reason = 'there is no policy, so every caller may do everything'
    return { allowed: true, decided_by: 'no_policy', reason, rule: null }
  }
  const { allowed, rule: index } = new Authorization(policy).explain({ clientId: client }, action, pattern, channel)
  const rule = index === undefined ? undefined : policy.rules[index]
  if (rule === undefined) {
    const reason = `no rule of ${policy.rules.length} allows it, and calls that no rule allows are denied`
    return { allowed, decided_by: 'no_rule', reason, rule: null }
  }
  const { clients, actions, patterns, channels, effect } = ruleText(rule)
  return {
    allowed,
    decided_by: 'rule',
    reason: `rule ${rule.index} ${allowed ? 'allows' : 'denies'} it; the first rule is 0`,
    rule: {
      index: rule.index,
      clients: [...clients],
      actions: [...actions],
      patterns: [...patterns],
      channels: [...channels],
      effect,
    },
  }
}

const operatorRoute = defineManagementRoute({
  name: '/api/operator',
  summary: 'The caller of this request and its roles.',
  input: Type.Object({}, STRICT),
  output: Type.Object({
    client: Type.String({ description: 'The ClientID of the caller.' }),
    roles: Type.Array(Type.Unsafe<(typeof ROLES)[number]>({ type: 'string', enum: [...ROLES] }), {
      description: 'The roles of the caller, including those that its highest role contains.',
    }),
  }),
  run: (_query, { operator }) => ({
    client: operator.clientId,
    roles: ROLES.filter((role) => hasRole(operator, role)),
  }),
})

export const securityOperations: readonly Operation[] = [securityRoute, policyTestRoute, operatorRoute]
