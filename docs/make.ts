/** Writes the pages, and the parts of pages, that follow from the code: `npm run docs`. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { configurationPage } from './make/configuration.ts'
import { codesTable, pluginCodesTable, scopesTable } from './make/codes.ts'
import { eventsPage } from './make/events.ts'
import { helpOfAll } from './make/help.ts'
import { routesTable } from './make/routes.ts'

const folder = new URL('./', import.meta.url)

/** Each generated page by its name, as it should read. */
export async function generatedPages(): Promise<Record<string, string>> {
	return {
		'configuration.md': configurationPage(),
		'events.md': await eventsPage(),
		'http-api.md': filled(pageAt('http-api.md'), {
			codes: await codesTable(),
			'plugin codes': await pluginCodesTable(),
			scopes: await scopesTable(),
			routes: routesTable(JSON.parse(pageAt('openapi.json'))),
		}),
		'command-line.md': filled(pageAt('command-line.md'), { help: await helpOfAll() }),
	}
}

export function pageAt(name: string): string {
	return readFileSync(new URL(name, folder), 'utf8')
}

/** Puts each part between its marks, `<!-- made: name -->` and `<!-- end -->`. Throws where a part has no place. */
function filled(page: string, parts: Record<string, string>): string {
	for (const [name, text] of Object.entries(parts)) {
		const mark = `<!-- made: ${name} -->`
		const from = page.indexOf(mark)
		const to = page.indexOf('<!-- end -->', from)
		if (from < 0 || to < 0) throw new Error(`no place for "${name}"`)
		page = `${page.slice(0, from)}${mark}\n\n${text.trim()}\n\n${page.slice(to)}`
	}
	return page
}

if (import.meta.main) {
	for (const [name, text] of Object.entries(await generatedPages())) {
		const isCurrent = existsSync(new URL(name, folder)) && pageAt(name) === text
		if (!isCurrent) writeFileSync(new URL(name, folder), text)
		process.stdout.write(`docs/${name} ${isCurrent ? 'is current' : 'was written'}\n`)
	}
}
