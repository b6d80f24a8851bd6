import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

import { expect, test } from 'vitest'

import { ROOT } from '../testing/pages.ts'

const pages = globSync(['*.md', 'docs/**/*.md', '{packages,apps,tools}/*/README.md', 'examples/README.md'], {
  cwd: ROOT,
})

test.each(pages)('docs - every link of %s leads to a file and a heading', (page) => {
  const broken = linksOf(page).filter((link) => !leadsSomewhere(page, link))
  expect(broken).toEqual([])
})

/** The relative links of a page, without those in code blocks. */
function linksOf(page: string): string[] {
  const prose = readFileSync(join(ROOT, page), 'utf8').replaceAll(/^```[^]*?^```$/gm, '')
  return Array.from(prose.matchAll(/\]\(([^)\s]+)\)/g), ([, link = '']) => link).filter(
    (link) => !/^[a-z]+:/.test(link),
  )
}

function leadsSomewhere(page: string, link: string): boolean {
  const [path = '', anchor] = link.split('#')
  const target = path === '' ? page : relative(ROOT, join(ROOT, dirname(page), path))
  const file = join(ROOT, target)
  if (!existsSync(file)) return false
  if (anchor === undefined || statSync(file).isDirectory() || !target.endsWith('.md')) return true
  return headingsOf(file).includes(anchor)
}

/** The anchors that GitHub gives to the headings of a page. */
function headingsOf(file: string): string[] {
  return Array.from(readFileSync(file, 'utf8').matchAll(/^#+ (.+)$/gm), ([, heading = '']) =>
    heading
      .trim()
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-'),
  )
}
