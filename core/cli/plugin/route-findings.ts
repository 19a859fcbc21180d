/** Checks the routes of a plugin against the rules of the gateway. */
import type { RequestRoute } from '@hapi/hapi'
import type { GenerationView } from '../../plugin.ts'
import type { PluginFinding } from './check.ts'

export function routeFindings(plugin: string, { main, legacy }: GenerationView['servers']): PluginFinding[] {
	const routes = [...main.table(), ...(legacy?.table() ?? [])].filter((route) => route.realm.plugin === plugin)
	return routes.flatMap((route) =>
		problemsOf(route).map(([problem, fix]): PluginFinding => ({
			level: 'warning',
			problem: `${route.method.toUpperCase()} ${route.path} ${problem}`,
			fix,
		})),
	)
}

function problemsOf({ method, path, settings }: RequestRoute): [problem: string, fix: string][] {
	const { validate, tags = [], description } = settings
	const auth: unknown = settings.auth // hapi's types leave out `false`
	const problems: [string, string][] = []
	if (auth === false)
		problems.push(['answers callers without a token', 'remove `auth: false`, unless it is meant for everybody'])
	else if (!hasScope(auth))
		problems.push([
			'has no scope: only callers with the scope * may call it',
			"add `auth: { access: { scope: ['…', '*'] } }` to its options, with a scope of the plugin's own or of the gateway",
		])
	if (['post', 'put', 'patch'].includes(method) && !validate?.payload)
		problems.push(['accepts any body', 'add `validate: { payload: … }` to its options, with a joi schema'])
	if (path.includes('{') && !validate?.params)
		problems.push([
			'accepts any parameter in its path',
			'add `validate: { params: … }` to its options, with a joi schema',
		])
	if (tags.includes('api') && !description)
		problems.push(['is in the API reference without a description', 'add `description` to its options'])
	return problems
}

function hasScope(auth: unknown): boolean {
	const { access } = (auth ?? {}) as { access?: { scope?: unknown }[] | { scope?: unknown } }
	return [access ?? []].flat().some(({ scope }) => Boolean(scope))
}
