import { isSection } from './environment.ts'
import type { Problem } from './problems.ts'
import { suggest } from './suggest.ts'

/** Whether `default_provider` and `fallback` name providers that exist. Wrong shapes are left to the schema. */
export function checkProviders(settings: unknown, where: (path: string) => Problem['where']): Problem[] {
	if (!isSection(settings) || !isSection(settings.providers)) return []
	const names = Object.keys(settings.providers)
	const known = names.join(', ')
	const missing = (path: string, name: string): Problem => {
		const meant = suggest(name, names)
		const message = `no such provider; there ${names.length === 1 ? 'is' : 'are'} ${known}.${meant ? ` did you mean "${meant}"?` : ''}`
		return { path, message, where: where(path) }
	}
	const problems: Problem[] = []
	const { default_provider: chosen, fallback } = settings
	if (typeof chosen === 'string' && !names.includes(chosen)) problems.push(missing('default_provider', chosen))
	if (chosen === undefined && names.length > 1) {
		const message = `is missing; with several providers it must name one of them: ${known}`
		problems.push({ path: 'default_provider', message, where: where('providers') })
	}
	for (const [index, name] of Array.isArray(fallback) ? fallback.entries() : []) {
		if (typeof name === 'string' && !names.includes(name)) problems.push(missing(`fallback.${index}`, name))
	}
	return problems
}
