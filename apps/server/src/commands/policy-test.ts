import { dirname, resolve } from 'node:path'

import type { Policy } from '@signalbox/broker-core'
import { POLICY_ACTIONS, RESOURCE_TYPES } from '@signalbox/broker-core'
import { messageOf, readSmallFile } from '@signalbox/broker-core/internal'

import { ServerError } from '../errors.ts'
import { parseYaml } from '../files/yaml.ts'
import type { CommandCall } from './command.ts'
import type { ExitCode } from './exit-codes.ts'
import { EXIT } from './exit-codes.ts'
import { isObject } from './json.ts'
import type { PolicyCall } from './policy.ts'
import { decide, readPolicy, ruleText } from './policy.ts'

interface ExpectedDecision extends PolicyCall {
  readonly expect: 'allow' | 'deny'
}

interface PolicyTests {
  readonly policy: string
  readonly tests: readonly ExpectedDecision[]
}

/**
 * `signalbox policy test`: compares the decisions of a policy with those that a file expects, and prints each that
 * differs.
 * @throws ServerError CONFIG_INVALID, listing every problem of the files
 */
export async function policyTestCommand({ line, io }: CommandCall): Promise<ExitCode> {
  const file = line.word(0)
  const { policy: policyFile, tests } = await readTests(file)
  const policy: Policy = await readPolicy(resolve(dirname(file), policyFile))
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

async function readTests(file: string): Promise<PolicyTests> {
  let text: string
  try {
    text = (await readSmallFile(file)).text
  } catch (error) {
    throw new ServerError('CONFIG_INVALID', [messageOf(error)], { cause: error })
  }
  const parsed = parseYaml(text)
  if ('problem' in parsed)
    throw new ServerError('CONFIG_INVALID', [`${file}: it is neither YAML nor JSON: ${parsed.problem}`])
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
    throw new ServerError(
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
