/** The document of the API, as a gateway on this code answers with it. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { boot } from '../../core/boot.ts'
import { composition } from '../../core/host/config.ts'
import type { ApiDocument } from './routes.ts'

/** Settings that switch on every plugin with routes, those too that are off by default. As text for gateway.yaml. */
export const withAllRoutes = `plugins: ${JSON.stringify(
	Object.fromEntries([...composition.plugins].flatMap(([name, { answersAt }]) => (answersAt ? [[name, true]] : []))),
)}\n`

/** Starts a gateway with a temporary home for this. */
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

/** With the default address, since this gateway listens at a free port. */
function portable(document: ApiDocument): ApiDocument {
	for (const { servers = [] } of Object.values(document.paths))
		for (const { variables } of servers) if (variables?.port) variables.port.default = '17890'
	return document
}
