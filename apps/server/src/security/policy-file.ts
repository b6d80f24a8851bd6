import type { Policy } from '@signalbox/broker-core'
import { Authorization, parsePolicy, PolicyError } from '@signalbox/broker-core'
import { parsePolicySteps } from '@signalbox/broker-core/internal'
import { watchFiles } from '@signalbox/http-kit'

import { ServerError } from '../errors.ts'
import { inSlices } from '../files/in-slices.ts'
import type { NotifySecurity } from './events.ts'
import type { ParsedYaml } from '../files/yaml.ts'

/** The policy of a file: read at the start, and again whenever the file changes. */
export interface PolicyFile extends Disposable {
  readonly authorization: Authorization
}

/**
 * Opens the policy. A file that turns bad later is reported, and the policy that was good stays in force (S4).
 * @throws ServerError CONFIG_INVALID naming every problem of the file
 */
export async function openPolicyFile(file: string, notify: NotifySecurity, lookMs?: number): Promise<PolicyFile> {
  const parse = await policyParser()
  const { parseYamlAside } = await import('../files/yaml.ts')
  let authorization: Authorization | undefined
  try {
    const watched = watchFiles([file], {
      parse: ([text = '']) => parse(text),
      reparse: async ([text = '']) => inSlices(parsePolicySteps(valueOf(await parseYamlAside(text)))),
      changed(policy) {
        authorization?.replace(policy)
        notify({ kind: 'policy.reloaded', file, rules: policy.rules.length })
      },
      refused: (error) => notify({ kind: 'policy.refused', file, problems: problemsOf(error) }),
      lookMs,
    })
    authorization = new Authorization(watched.value)
    return { authorization, [Symbol.dispose]: () => watched[Symbol.dispose]() }
  } catch (error) {
    throw new ServerError(
      'CONFIG_INVALID',
      problemsOf(error).map((problem) => `authorization.policyFile: ${problem}`),
      { cause: error },
    )
  }
}

/** Reads a policy that is written in YAML, or in JSON, which is YAML too. @throws PolicyError */
export async function policyParser(): Promise<(text: string) => Policy> {
  // Only servers with a policy load the parser.
  const { parseYaml } = await import('../files/yaml.ts')
  return (text) => parsePolicy(valueOf(parseYaml(text)))
}

/** @throws PolicyError */
function valueOf(parsed: ParsedYaml): unknown {
  if ('problem' in parsed) throw new PolicyError([`it is neither YAML nor JSON: ${parsed.problem}`])
  return parsed.value
}

function problemsOf(error: unknown): readonly string[] {
  if (error instanceof PolicyError) return error.problems
  return [error instanceof Error ? error.message : String(error)]
}
