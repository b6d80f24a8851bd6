import { messageOf, readSmallFile } from '@signalbox/broker-core/internal'

import { SETTINGS } from './settings.ts'
import { mostSimilar } from '@signalbox/broker-core/internal'
import type { Given } from './value.ts'
import { readYaml } from './value.ts'

type Section = Readonly<Record<string, unknown>>

/** The keys of all settings and sections. */
const KEYS: readonly string[] = [
  ...new Set(SETTINGS.flatMap(({ path }) => path.map((_, i) => path.slice(0, i + 1).join('.')))),
]

/** Reads settings from a YAML file, in sections: `http: { port: 9090 }`. An empty file sets nothing. */
export async function fromFile(file: string): Promise<{ given: Given[]; problems: string[] }> {
  let text: string
  try {
    text = (await readSmallFile(file)).text
  } catch (error) {
    return { given: [], problems: [`--config: ${messageOf(error)}; allowed: a YAML file`] }
  }
  // Loads the parser only if there is a file.
  const { parseYaml } = await import('../files/yaml.ts')
  const given: Given[] = []
  const problems: string[] = []
  const parsed = parseYaml(text)
  if ('problem' in parsed) {
    return { given: [], problems: [`--config: ${file} is not YAML: ${parsed.problem.replace(/:$/, '')}`] }
  }
  const root = parsed.value
  if (isSection(root)) readSection(root, [])
  else if (root !== null)
    problems.push(`--config: ${file} contains no settings; allowed: sections such as http: { port: 9090 }`)
  return { given, problems }

  function readSection(section: Section, path: readonly string[]): void {
    const seen = new Map<string, string>()
    for (const [name, value] of Object.entries(section)) {
      const here = [...path, name]
      // Sections are nested: a key with a dot would be a second notation for the same setting.
      const key = here.map((word) => (word.includes('.') ? JSON.stringify(word) : word)).join('.')
      const other = seen.get(name.toLowerCase())
      seen.set(name.toLowerCase(), name)
      const setting = SETTINGS.find((candidate) => sameKey(candidate.key, key))
      if (other !== undefined) problems.push(`${key}: the same key as ${other} (file ${file}); allowed: one of the two`)
      else if (setting) given.push({ setting, value: readYaml(setting, value), origin: `file ${file}` })
      else if (childrenOf(key).length === 0) problems.push(unknownKey(key))
      else if (isSection(value)) readSection(value, here)
      // A section whose settings are all commented out reads as null.
      else if (value !== null)
        problems.push(`${key}: not a section (file ${file}); allowed: ${childrenOf(key).join(', ')}`)
    }
  }

  function unknownKey(key: string): string {
    const meant = mostSimilar(key, KEYS)
    return `${key}: unknown setting (file ${file})${meant ? `; did you mean ${meant}?` : ''}; allowed: the settings that --help lists`
  }
}

/** Compares keys without regard to case: the specification writes `Connectors.A2A.AgentTTLSeconds`. */
function sameKey(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase()
}

function childrenOf(key: string): string[] {
  return SETTINGS.map((setting) => setting.key).filter((candidate) =>
    sameKey(candidate.slice(0, key.length + 1), `${key}.`),
  )
}

function isSection(value: unknown): value is Section {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
