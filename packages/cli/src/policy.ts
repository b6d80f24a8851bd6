import { dirname, resolve } from 'node:path'

import type { Policy, PolicyAction, ResourceType } from '@signalbox/broker-core'
import { Authorization, POLICY_ACTIONS, PolicyError, RESOURCE_TYPES } from '@signalbox/broker-core'
import { messageOf, readSmallFile } from '@signalbox/broker-core/internal'

import type { CommandCall, CommandHost } from './command.ts'
import type { ExitCode } from './errors.ts'
import { CommandError, EXIT } from './errors.ts'
import { isObject } from './json.ts'

/**
 * `signalbox policy check`: prints whether a policy allows a call, and the rule that decides.
 * @throws CommandError CONFIG_INVALID, listing every problem of the call or of the file
 */
export async function policyCheckCommand({ line, io, host }: CommandCall): Promise<void> {
  const action = POLICY_ACTIONS.find((known) => known === line.option('action'))
  const pattern = RESOURCE_TYPES.find((known) => known === line.option('pattern'))
  if (action === undefined || pattern === undefined) {
    throw new CommandError('CONFIG_INVALID', [
      ...(action
        ? []
        : [`policy check: --action: ${line.option('action')} is unknown; allowed are ${POLICY_ACTIONS.join(', ')}`]),
      ...(pattern
        ? []
        : [`policy check: --pattern: ${line.option('pattern')} is unknown; allowed are ${RESOURCE_TYPES.join(', ')}`]),
    ])
  }
  const policy = await readPolicy(host, line.word(0))
  const decision = decide(policy, { client: line.option('client'), action, pattern, channel: line.option('channel') })
  await io.stdout.write(line.has('json') ? `${JSON.stringify(decision)}\n` : explanation(policy, decision))
}

/** A call that a policy decides on. */
interface PolicyCall {
  readonly client: string
  readonly action: PolicyAction
  readonly pattern: ResourceType
  readonly channel: string
}

interface Decision extends PolicyCall {
  readonly allowed: boolean
  /** The number of the rule that decides, from 0; `null` if no rule matches. */
  readonly rule: number | null
}

/** Returns the decision of a policy on a call. */
function decide(policy: Policy, call: PolicyCall): Decision {
  const { client, action, pattern, channel } = call
  const { allowed, rule } = new Authorization(policy).explain({ clientId: client }, action, pattern, channel)
  return { ...call, allowed, rule: rule ?? null }
}

/** Reads a policy. @throws CommandError CONFIG_INVALID, listing every problem */
async function readPolicy({ policyParser }: CommandHost, file: string): Promise<Policy> {
  const parse = await policyParser()
  try {
    return parse((await readSmallFile(file)).text)
  } catch (error) {
    if (error instanceof PolicyError) {
      const problems = error.problems.map((problem) => `${file}: ${problem}`)
      throw new CommandError('CONFIG_INVALID', problems, { cause: error })
    }
    throw new CommandError('CONFIG_INVALID', [messageOf(error)], { cause: error })
  }
}

function explanation(policy: Policy, { client, action, pattern, channel, allowed, rule }: Decision): string {
  const call = `${client} may ${allowed ? '' : 'not '}${action} on ${pattern} ${channel}`
  return `${allowed ? 'allowed' : 'denied'}: ${call}\n${ruleText(policy, rule)}\n`
}

/** Returns the rule that decides, in words. */
function ruleText(policy: Policy, rule: number | null): string {
  return rule === null
    ? `no rule of ${policy.rules.length} allows it, and calls that no rule allows are denied`
    : `rule ${rule} decides (the first is rule 0)`
}

interface ExpectedDecision extends PolicyCall {
  readonly expect: 'allow' | 'deny'
}

/**
 * `signalbox policy test`: compares the decisions of a policy with those that a file expects, and prints each that
 * differs.
 * @throws CommandError CONFIG_INVALID, listing every problem of the files
 */
export async function policyTestCommand({ line, io, host }: CommandCall): Promise<ExitCode> {
  const file = line.word(0)
  const { policy: policyFile, tests } = await readTests(host, file)
  const policy: Policy = await readPolicy(host, resolve(dirname(file), policyFile))
  let failed = 0
  for (const { expect, ...call } of tests) {
    const decision = decide(policy, call)
    const passed = decision.allowed === (expect === 'allow')
    if (!passed) failed++
    if (line.has('json')) {
      await io.stdout.write(`${JSON.stringify({ ...decision, expect, passed })}\n`)
    } else if (!passed) {
      const { client, action, pattern, channel, rule } = decision
      await io.stdout.write(
        `failed: ${client} ${action} ${pattern} ${channel}: expected ${expect}, got ${decision.allowed ? 'allow' : 'deny'}: ${ruleText(policy, rule)}\n`,
      )
    }
  }
  if (!line.has('json')) await io.stdout.write(`${tests.length - failed} of ${tests.length} tests passed\n`)
  return failed === 0 ? EXIT.OK : EXIT.FAILED
}

async function readTests(
  { yamlParser }: CommandHost,
  file: string,
): Promise<{ policy: string; tests: readonly ExpectedDecision[] }> {
  let text: string
  try {
    text = (await readSmallFile(file)).text
  } catch (error) {
    throw new CommandError('CONFIG_INVALID', [messageOf(error)], { cause: error })
  }
  const parse = await yamlParser()
  const parsed = parse(text)
  if ('problem' in parsed)
    throw new CommandError('CONFIG_INVALID', [`${file}: it is neither YAML nor JSON: ${parsed.problem}`])
  const { value } = parsed
  const problems: string[] = []
  const document = isObject(value) ? value : {}
  const { policy, tests } = document
  if (typeof policy !== 'string')
    problems.push('policy is missing; it must be the path of a policy, relative to this file')
  if (!Array.isArray(tests))
    problems.push('tests is missing; it must be a list of {client, action, pattern, channel, expect}')
  const list = (Array.isArray(tests) ? tests : []).flatMap((test: unknown, i) => {
    const found = testOf(test)
    if (typeof found !== 'string') return [found]
    problems.push(`test ${i}: ${found}`)
    return []
  })
  if (problems.length > 0 || typeof policy !== 'string') {
    throw new CommandError(
      'CONFIG_INVALID',
      problems.map((problem) => `${file}: ${problem}`),
    )
  }
  return { policy, tests: list }
}

/** Returns a test, or its problem. */
function testOf(value: unknown): ExpectedDecision | string {
  if (!isObject(value)) return 'it is not an object; allowed is {client, action, pattern, channel, expect}'
  const { client, channel, expect } = value
  const action = POLICY_ACTIONS.find((known) => known === value['action'])
  const pattern = RESOURCE_TYPES.find((known) => known === value['pattern'])
  if (typeof client !== 'string') return 'client is missing; it must be the name of a caller'
  if (action === undefined)
    return `action is ${JSON.stringify(value['action'])}; allowed are ${POLICY_ACTIONS.join(', ')}`
  if (pattern === undefined)
    return `pattern is ${JSON.stringify(value['pattern'])}; allowed are ${RESOURCE_TYPES.join(', ')}`
  if (typeof channel !== 'string') return 'channel is missing; it must be the name of a channel'
  if (expect !== 'allow' && expect !== 'deny') return `expect is ${JSON.stringify(expect)}; allowed are allow, deny`
  return { client, action, pattern, channel, expect }
}
