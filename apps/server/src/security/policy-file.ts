import type { Policy } from '@signalbox/broker-core'
import { Authorization, parsePolicy, PolicyError } from '@signalbox/broker-core'
import { parsePolicySteps } from '@signalbox/broker-core/internal'
import { watchFiles } from '@signalbox/http-kit'

import { ServerError } from '../errors.ts'
import { inSlices } from '../files/in-slices.ts'
import type { NotifySecurity } from './events.ts'
import type { ParsedYaml } from '../files/yaml.ts'

/** The policy of a file: read at the start, and again after each change of the file. */
export interface PolicyFile extends Disposable {
  readonly authorization: Authorization
}

/**
 * Opens the policy. If the file becomes invalid later, that is reported and the last valid policy
 * remains in force (S4).
 * @throws ServerError CONFIG_INVALID, listing every problem of the file
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

/**
 * Returns a parser of policies in YAML, or in JSON, which is a subset of YAML. The parser throws
 * PolicyError.
 */
export async function policyParser(): Promise<(text: string) => Policy> {
  // Loads the parser only for servers with a policy.
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
