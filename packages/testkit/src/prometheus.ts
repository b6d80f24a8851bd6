/** One sample of the Prometheus text format. */
export interface Sample {
  readonly name: string
  readonly labels: string
  readonly value: number
}

/** Reads the Prometheus text exposition of a server. */
export async function scrape(api: string): Promise<readonly Sample[]> {
  const response = await fetch(`${api}/metrics`)
  const text = await response.text()
  if (!response.ok) throw new Error(`/metrics answered ${response.status}: ${text.slice(0, 200)}`)
  return parseSamples(text)
}

export function parseSamples(text: string): readonly Sample[] {
  const samples: Sample[] = []
  for (const line of text.split('\n')) {
    const match = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/.exec(line)
    if (match) samples.push({ name: match[1] ?? '', labels: match[2] ?? '', value: Number(match[3]) })
  }
  return samples
}

/** Returns the sum of a metric over its labels. Throws if the server does not have it. */
export function total(samples: readonly Sample[], name: string): number {
  const found = samples.filter((sample) => sample.name === name)
  if (found.length === 0) throw new Error(`the server has no metric ${name}`)
  return found.reduce((sum, { value }) => sum + value, 0)
}
