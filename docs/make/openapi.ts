/** The OpenAPI document, from a gateway that runs this code. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { boot } from '../../core/boot.ts'
import { composition } from '../../core/host/config.ts'
import type { ApiDocument } from './routes.ts'

/** The text of a gateway.yaml that switches on every plugin with routes, including those that are off by default. */
export const withAllRoutes = `plugins: ${JSON.stringify(
	Object.fromEntries([...composition.plugins].flatMap(([name, { answersAt }]) => (answersAt ? [[name, true]] : []))),
)}\n`

/** Starts a gateway with a temporary home, and asks it. */
export async function apiDocument(): Promise<ApiDocument> {
	const home = mkdtempSync(join(tmpdir(), 'svc-docs-'))
	try {
		mkdirSync(join(home, 'config'))
		writeFileSync(join(home, 'config/gateway.yaml'), withAllRoutes)
		const env = { SVC_PORT: '0', SVC_LEGACY_PORT: '0', SVC_LOG_LEVEL: 'fatal' }
		const { gateway, stop } = await boot({ home, env })
		try {
			// oxlint-disable-next-line no-restricted-globals -- the address is our own
			const reply = await fetch(`${gateway.status.url('main')}/v1/openapi.json`)
			return portable((await reply.json()) as ApiDocument)
		} finally {
			await stop()
		}
	} finally {
		rmSync(home, { recursive: true, force: true })
	}
}

/** Replaces the free port of this gateway by the default one. */
function portable(document: ApiDocument): ApiDocument {
	for (const { servers = [] } of Object.values(document.paths))
		for (const { variables } of servers) if (variables?.port) variables.port.default = '17890'
	return document
}
