import type { Policy, PolicyAction, ResourceType } from '@signalbox/broker-core'
import { Authorization, POLICY_ACTIONS, RESOURCE_TYPES, PolicyError } from '@signalbox/broker-core'
import { messageOf, readSmallFile } from '@signalbox/broker-core/internal'

import { ServerError } from '../errors.ts'
import { policyParser } from '../security/policy-file.ts'
import type { CommandCall } from './command.ts'

/**
 * `signalbox policy check`: prints whether a policy allows a call, and the rule that decides.
 * @throws ServerError CONFIG_INVALID, listing every problem of the call or of the file
 */
export async function policyCheckCommand({ line, io }: CommandCall): Promise<void> {
  const action = POLICY_ACTIONS.find((known) => known === line.option('action'))
  const pattern = RESOURCE_TYPES.find((known) => known === line.option('pattern'))
  if (action === undefined || pattern === undefined) {
    throw new ServerError('CONFIG_INVALID', [
      ...(action
        ? []
        : [`policy check: --action: ${line.option('action')} is unknown; allowed are ${POLICY_ACTIONS.join(', ')}`]),
      ...(pattern
        ? []
        : [`policy check: --pattern: ${line.option('pattern')} is unknown; allowed are ${RESOURCE_TYPES.join(', ')}`]),
    ])
  }
  const policy = await readPolicy(line.word(0))
  const decision = decide(policy, { client: line.option('client'), action, pattern, channel: line.option('channel') })
  await io.stdout.write(line.has('json') ? `${JSON.stringify(decision)}\n` : explanation(policy, decision))
}

/** A call that a policy decides on. */
export interface PolicyCall {
  readonly client: string
  readonly action: PolicyAction
  readonly pattern: ResourceType
  readonly channel: string
}

export interface Decision extends PolicyCall {
  readonly allowed: boolean
  /** The number of the rule that decides, from 0; `null` if no rule matches. */
  readonly rule: number | null
}

/** Returns the decision of a policy on a call. */
export function decide(policy: Policy, call: PolicyCall): Decision {
  const { client, action, pattern, channel } = call
  const { allowed, rule } = new Authorization(policy).explain({ clientId: client }, action, pattern, channel)
  return { ...call, allowed, rule: rule ?? null }
}

/** Reads a policy. @throws ServerError CONFIG_INVALID, listing every problem */
export async function readPolicy(file: string): Promise<Policy> {
  const parse = await policyParser()
  try {
    return parse((await readSmallFile(file)).text)
  } catch (error) {
    if (error instanceof PolicyError) {
      const problems = error.problems.map((problem) => `${file}: ${problem}`)
      throw new ServerError('CONFIG_INVALID', problems, { cause: error })
    }
    throw new ServerError('CONFIG_INVALID', [messageOf(error)], { cause: error })
  }
}

function explanation(policy: Policy, { client, action, pattern, channel, allowed, rule }: Decision): string {
  const call = `${client} may ${allowed ? '' : 'not '}${action} on ${pattern} ${channel}`
  return `${allowed ? 'allowed' : 'denied'}: ${call}\n${ruleText(policy, rule)}\n`
}

/** Returns the rule that decides, in words. */
export function ruleText(policy: Policy, rule: number | null): string {
  return rule === null
    ? `no rule of ${policy.rules.length} allows it, and calls that no rule allows are denied`
    : `rule ${rule} decides (the first is rule 0)`
}
