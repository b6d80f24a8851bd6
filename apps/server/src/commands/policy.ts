import process from 'node:process'

import type { Policy, PolicyAction, ResourceType } from '@signalbox/broker-core'
import { Authorization, POLICY_ACTIONS, RESOURCE_TYPES, PolicyError } from '@signalbox/broker-core'
import { messageOf, readSmallFile } from '@signalbox/broker-core/internal'

import { ServerError } from '../errors.ts'
import { policyParser } from '../security/policy-file.ts'
import { readCommandLine } from './arguments.ts'
import { helpWanted, USAGE } from './usage.ts'

/**
 * `signalbox policy check`: prints whether a policy allows a call, and the rule that decides.
 * @throws ServerError CONFIG_INVALID, listing every problem of the call or of the file
 */
export async function policyCommand(args: readonly string[]): Promise<void> {
  if (helpWanted('policy', args)) return
  const [verb, ...rest] = args
  if (verb !== 'check') throw new ServerError('CONFIG_INVALID', [`policy: allowed is ${USAGE.policy}`])
  const { option, positionals } = readCommandLine('policy check', rest, {
    client: undefined,
    action: undefined,
    pattern: undefined,
    channel: undefined,
  })
  const [file, ...more] = positionals
  if (file === undefined || more.length > 0)
    throw new ServerError('CONFIG_INVALID', [`policy: allowed is ${USAGE.policy}`])
  const action = POLICY_ACTIONS.find((known) => known === option('action'))
  const pattern = RESOURCE_TYPES.find((known) => known === option('pattern'))
  if (action === undefined || pattern === undefined) {
    throw new ServerError('CONFIG_INVALID', [
      ...(action
        ? []
        : [`policy check: --action: ${option('action')} is unknown; allowed are ${POLICY_ACTIONS.join(', ')}`]),
      ...(pattern
        ? []
        : [`policy check: --pattern: ${option('pattern')} is unknown; allowed are ${RESOURCE_TYPES.join(', ')}`]),
    ])
  }
  process.stdout.write(explanation(await readPolicy(file), option('client'), action, pattern, option('channel')))
}

async function readPolicy(file: string): Promise<Policy> {
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

function explanation(
  policy: Policy,
  clientId: string,
  action: PolicyAction,
  type: ResourceType,
  channel: string,
): string {
  const { allowed, rule } = new Authorization(policy).explain({ clientId }, action, type, channel)
  const call = `${clientId} may ${allowed ? '' : 'not '}${action} on ${type} ${channel}`
  const because =
    rule === undefined
      ? `no rule of ${policy.rules.length} allows it, and calls that no rule allows are denied`
      : `rule ${rule} decides (the first is rule 0)`
  return `${allowed ? 'allowed' : 'denied'}: ${call}\n${because}\n`
}
