/** A card as the page shows it. Owners write cards, so every field can have any value. */
export interface ShownCard {
  readonly description: string
  readonly provider: string
  readonly protocolVersions: readonly string[]
  readonly inputModes: readonly string[]
  readonly outputModes: readonly string[]
  readonly capabilities: readonly string[]
  readonly skills: readonly Skill[]
  readonly interfaces: readonly Interface[]
}

export interface Skill {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly tags: readonly string[]
  readonly examples: readonly string[]
}

export interface Interface {
  readonly url: string
  readonly binding: string
}

type Fields = Readonly<Record<string, unknown>>

/** Reads the fields of a card that people look for. Fields of another form are left out. */
export function readCard(card: Fields): ShownCard {
  return {
    description: text(card['description']),
    provider: text(fields(card['provider'])['organization']),
    protocolVersions: texts(card['protocolVersions']),
    inputModes: texts(card['defaultInputModes']),
    outputModes: texts(card['defaultOutputModes']),
    capabilities: Object.entries(fields(card['capabilities']))
      .filter(([, value]) => value === true)
      .map(([name]) => name),
    skills: list(card['skills']).map((skill) => ({
      id: text(skill['id']),
      name: text(skill['name']),
      description: text(skill['description']),
      tags: texts(skill['tags']),
      examples: texts(skill['examples']),
    })),
    interfaces: list(card['supportedInterfaces']).map((one) => ({
      url: text(one['url']),
      binding: [text(one['protocolBinding'] ?? one['transport']), text(one['protocolVersion'])].join(' ').trim(),
    })),
  }
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function texts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []
}

function fields(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
}

function list(value: unknown): readonly Fields[] {
  return Array.isArray(value) ? value.map(fields) : []
}
