import { Facts, Panel } from '../../components/page.tsx'
import { UserText } from '../../components/values.tsx'

import './agents.css'

/** The description of a card, and what the agent accepts. */
export function About({ card }: { readonly card: ShownCard }) {
  return (
    <div>
      {card.description === '' ? (
        <p class="muted">The card has no description.</p>
      ) : (
        <p class="prose">
          <UserText max={2_048}>{card.description}</UserText>
        </p>
      )}
      <Facts
        class="card-facts"
        of={{
          Provider: card.provider !== '' && <UserText>{card.provider}</UserText>,
          'A2A versions': listed(card.protocolVersions),
          Capabilities: listed(card.capabilities),
          Accepts: listed(card.inputModes),
          'Answers with': listed(card.outputModes),
          Interfaces: listed(card.interfaces.map(({ url, binding }) => `${binding} ${url}`.trim())),
        }}
      />
    </div>
  )
}

/** What the agent can do. */
export function Skills({ card }: { readonly card: ShownCard }) {
  return (
    <Panel title="Skills" note={card.skills.length === 0 ? 'The card lists none' : undefined}>
      <ul class="skills">
        {card.skills.slice(0, 200).map((skill, index) => (
          <SkillView key={`${index} ${skill.id}`} skill={skill} />
        ))}
      </ul>
    </Panel>
  )
}

function SkillView({ skill: { id, name, description, tags, examples } }: { readonly skill: Skill }) {
  return (
    <li>
      <h3>
        <UserText>{name}</UserText>{' '}
        <code class="muted">
          <UserText>{id}</UserText>
        </code>
      </h3>
      {description !== '' && (
        <p>
          <UserText max={2_048}>{description}</UserText>
        </p>
      )}
      {tags.length > 0 && (
        <p class="muted">
          <Texts values={tags} />
        </p>
      )}
      {examples.slice(0, 5).map((example, index) => (
        <p key={index} class="example">
          <UserText max={500}>{example}</UserText>
        </p>
      ))}
    </li>
  )
}

function listed(values: readonly string[]) {
  return values.length > 0 && <Texts values={values} />
}

function Texts({ values }: { readonly values: readonly string[] }) {
  return (
    <>
      {values.slice(0, 50).map((value, index) => (
        <>
          {index > 0 && ', '}
          <UserText key={index}>{value}</UserText>
        </>
      ))}
      {values.length > 50 && ` and ${values.length - 50} more`}
    </>
  )
}

/** A card as the page shows it. Owners write cards, so every field can have any value. */
interface ShownCard {
  readonly description: string
  readonly provider: string
  readonly protocolVersions: readonly string[]
  readonly inputModes: readonly string[]
  readonly outputModes: readonly string[]
  readonly capabilities: readonly string[]
  readonly skills: readonly Skill[]
  readonly interfaces: readonly Interface[]
}

interface Skill {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly tags: readonly string[]
  readonly examples: readonly string[]
}

interface Interface {
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
