/** The pages that people read. */
import { globSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export const root = new URL('../../', import.meta.url)

/** Pages whose commands are executed; relative to the repository. */
export const pages = find(['README.md', 'docs/**/*.md'])

/** All Markdown files of the repository. */
export const markdown = find(['*.md', 'docs/**/*.md', 'skills-examples/**/README.md'])

function find(patterns: string[]): string[] {
	return globSync(patterns, { cwd: fileURLToPath(root) })
		.map((path) => path.replaceAll('\\', '/'))
		.toSorted()
}
