/** Pages that plugins add. An invalid page is omitted, and logged once. */
import { hash } from 'node:crypto'
import { Joi } from '../../core/util/lazy-joi.ts'
import { encoded } from '../shared/encoded.ts'
import type { Context } from '../../core/plugin.ts'
import type { ConsolePage } from './contract.ts'

interface AddedPage {
	plugin: string
	title: string
	/** The name of the module below /console/, which changes with its content. */
	file: string
}

export type AddedPages = ReturnType<typeof addedPages>

const MODULE_LIMIT_BYTES = 512 * 1024
const schema = Joi.object({
	title: Joi.string().trim().min(1).max(24).required(),
	module: Joi.string().max(MODULE_LIMIT_BYTES, 'utf8').required(),
}).required()

/** Why a page is invalid; null if it is valid. */
export function pageProblem(page: unknown): string | null {
	return schema.validate(page, { convert: false }).error?.message ?? null
}

type AddedPageSource = AddedPage & { answer: ReturnType<typeof encoded> }

export function addedPages({ extensions, log }: Pick<Context, 'extensions' | 'log'>) {
	/** By extension; null for an invalid page. */
	const known = new WeakMap<ConsolePage, AddedPageSource | null>()
	const make = (plugin: string, page: ConsolePage): AddedPageSource | null => {
		const problem = pageProblem(page)
		if (problem !== null) {
			log.warn({ plugin }, `the console leaves out the page of plugin "${plugin}": ${problem}`)
			return null
		}
		const etag = hash('sha256', page.module).slice(0, 16)
		const answer = encoded({ bytes: Buffer.from(page.module), etag, type: 'text/javascript' })
		return { plugin, title: page.title, file: `page-${plugin}-${etag}.js`, answer }
	}
	const all = (): AddedPageSource[] => {
		const made = new Map<string, AddedPageSource>()
		for (const { plugin, value } of extensions('console')) {
			if (typeof value !== 'object' || value === null) continue
			const page = known.has(value) ? known.get(value) : make(plugin, value)
			known.set(value, page ?? null)
			if (page && !made.has(plugin)) made.set(plugin, page)
		}
		return [...made.values()]
	}
	return {
		list: (): AddedPage[] => all().map(({ plugin, title, file }) => ({ plugin, title, file })),
		file: (name: string) => all().find(({ file }) => file === name)?.answer,
	}
}
