import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { parse, parseAllDocuments } from 'yaml'

import { APP } from './cli.ts'

export interface ComposeService {
  readonly image: string
  readonly command?: string
  readonly environment?: Readonly<Record<string, string | number>>
  readonly volumes?: readonly string[]
  readonly ports?: readonly string[]
}

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string }
}

interface Container {
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[]
  readonly env: readonly { readonly name: string; readonly value: unknown }[]
  readonly readinessProbe: Probe
  readonly livenessProbe: Probe
}

export interface Deployment {
  readonly apiVersion: string
  readonly kind: string
  readonly spec: {
    readonly selector: { readonly matchLabels: Readonly<Record<string, string>> }
    readonly template: {
      readonly metadata: { readonly labels: Readonly<Record<string, string>> }
      readonly spec: { readonly terminationGracePeriodSeconds: number; readonly containers: readonly [Container] }
    }
  }
}

export interface Service {
  readonly apiVersion: string
  readonly kind: string
  readonly spec: {
    readonly selector: Readonly<Record<string, string>>
    readonly ports: readonly { readonly name: string; readonly port: number; readonly targetPort: string }[]
  }
}

const BLOCKS = [
  ...readFileSync(join(APP, '..', '..', 'docs', 'guides', 'clustering.md'), 'utf8').matchAll(/^```\w*\n(.*?)^```$/gms),
].map(([, text = '']) => text)

function blockWith(start: string): string {
  const found = BLOCKS.filter((text) => text.startsWith(start))
  if (found.length !== 1) throw new Error(`${found.length} blocks of docs/guides/clustering.md begin with ${start}`)
  return found[0] ?? ''
}

/** What `docs/guides/clustering.md` shows to be copied. */
export const PAGE = {
  natsConf: blockWith('# nats.conf'),
  frontConf: blockWith('# front.conf'),
  compose: parse(blockWith('# compose.yaml'), { merge: true }) as {
    readonly services: Readonly<Record<string, ComposeService>>
  },
  chartValues: parse(blockWith('# values of the chart')) as {
    readonly config: {
      readonly cluster: { readonly replicas: number }
      readonly jetstream: { readonly enabled: boolean }
      readonly merge: { readonly max_payload: number }
    }
  },
  manifests: parseAllDocuments(blockWith('apiVersion: apps/v1')).map((document): unknown => {
    if (document.errors.length > 0) throw document.errors[0]
    return document.toJS()
  }) as [Deployment, Service],
}
