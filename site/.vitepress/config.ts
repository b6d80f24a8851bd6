import { cpSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'

import { defineConfig } from 'vitepress'
import type { DefaultTheme, MarkdownOptions } from 'vitepress'

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '../..')
const REPOSITORY = 'https://github.com/signalbox/signalbox'

// Vite finds Vue only from pages inside this folder.
rmSync(join(ROOT, 'site/pages'), { recursive: true, force: true })
cpSync(join(ROOT, 'docs'), join(ROOT, 'site/pages'), { recursive: true })

/** Builds the sidebar from the tables of docs/README.md, so that a page is listed once. */
function sidebar(): DefaultTheme.SidebarItem[] {
  const sections = readFileSync(join(ROOT, 'docs/README.md'), 'utf8').split(/^## /m).slice(1)
  return sections.map((section) => ({
    text: section.slice(0, section.indexOf('\n')),
    items: Array.from(section.matchAll(/^\| \[([^\]]+)\]\(([^)]+)\)/gm), ([, text = '', page = '']) => ({
      text,
      link: `/${page.replace(/README\.md$/, '')}`,
    })),
  }))
}

/** Points links to files outside docs/ at the repository; the site contains only docs/. */
const linkToRepository: NonNullable<MarkdownOptions['config']> = (markdown) => {
  markdown.core.ruler.push('repository-links', ({ tokens, env }) => {
    const page = posix.join('docs', String(env.relativePath).replace(/(^|\/)index\.md$/, '$1README.md'))
    for (const link of tokens.flatMap(({ children }) => children ?? [])) {
      const href = link.attrGet('href')
      if (link.type !== 'link_open' || href === null || /^(?:[a-z]+:|#|\/)/.test(href)) continue
      const target = posix.join(posix.dirname(page), href)
      if (!target.startsWith('docs/')) link.attrSet('href', `${REPOSITORY}/blob/main/${target}`)
    }
  })
}

export default defineConfig({
  title: 'Signalbox',
  description: 'A message broker for AI tools and agents',
  srcDir: 'pages',
  outDir: './dist',
  // GitHub Pages serves a project below its name.
  base: process.env['SITE_BASE'] ?? '/',
  rewrites: { 'README.md': 'index.md', 'decisions/README.md': 'decisions/index.md' },
  cleanUrls: true,
  lastUpdated: false,
  markdown: { config: linkToRepository },
  themeConfig: {
    nav: [
      { text: 'Getting started', link: '/getting-started' },
      { text: 'Concepts', link: '/concepts' },
      { text: 'Reference', link: '/reference/configuration' },
    ],
    sidebar: sidebar(),
    outline: [2, 3],
    search: { provider: 'local' },
    socialLinks: [{ icon: 'github', link: REPOSITORY }],
    editLink: { pattern: `${REPOSITORY}/edit/main/docs/:path` },
  },
})
