/** `npm run docs`: generates parts of pages, and the files that a start copies into the home. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { jsonSchema } from '../config/json-schema.ts'
import { composition } from '../core/host/config.ts'
import { environmentTable, settingsReference } from './make/configuration.ts'
import { codesTable, pluginCodesTable, scopesTable } from './make/codes.ts'
import { eventsReference } from './make/events.ts'
import { exampleFile } from './make/example.ts'
import { helpOfAll } from './make/help.ts'
import { jsonText } from './make/json.ts'
import { apiDocument } from './make/openapi.ts'
import { routesTable } from './make/routes.ts'

const root = new URL('../', import.meta.url)

/** The text of each generated file, by its path from the root. */
export async function generatedFiles(): Promise<Record<string, string>> {
	const api = await apiDocument()
	return {
		'config/gateway.example.yaml': exampleFile(composition),
		'config/gateway.schema.json': jsonText(jsonSchema(composition)),
		'docs/configuration.md': filled(textAt('docs/configuration.md'), {
			environment: environmentTable(),
			settings: settingsReference(),
		}),
		'docs/events.md': filled(textAt('docs/events.md'), { events: await eventsReference() }),
		'docs/http-api.md': filled(textAt('docs/http-api.md'), {
			codes: await codesTable(),
			'plugin codes': await pluginCodesTable(),
			scopes: await scopesTable(),
			routes: routesTable(api),
		}),
		'docs/openapi.json': jsonText(api),
		'docs/command-line.md': filled(textAt('docs/command-line.md'), { help: await helpOfAll() }),
	}
}

/** The text of a file, by its path from the root. */
export function textAt(path: string): string {
	return readFileSync(new URL(path, root), 'utf8')
}

/** Puts each part between its marks, `<!-- made: name -->` and `<!-- end -->`. Throws if the marks are missing. */
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
	for (const [path, text] of Object.entries(await generatedFiles())) {
		const isCurrent = existsSync(new URL(path, root)) && textAt(path) === text
		if (!isCurrent) writeFileSync(new URL(path, root), text)
		process.stdout.write(`${path} ${isCurrent ? 'is current' : 'was written'}\n`)
	}
}
