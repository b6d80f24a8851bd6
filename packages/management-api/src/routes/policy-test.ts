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
import type { Static } from 'typebox'
import { Type } from 'typebox'

import { invalidParameters } from '../errors.ts'
import { defineManagementRoute, STRICT } from './route.ts'

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

export const policyTestRoute = defineManagementRoute({
  path: '/api/policy/test',
  summary: 'Reports whether the policy in force lets a caller act on a channel, and the rule that decides.',
  query: policyTestQuery,
  data: decisionData,
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
