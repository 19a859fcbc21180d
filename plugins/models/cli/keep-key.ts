/** Stores a key that was typed in `svc init` in the vault. */
import { isFault } from '../../../core/errors.ts'
import { readRuntimeFile } from '../../../core/process/runtime-file.ts'
import { holderOf } from '../../../core/process/lock.ts'
import { openApi } from '../../../core/cli/api.ts'
import { CliError } from '../../../core/cli/contract.ts'
import type { Cli } from '../../../core/cli/contract.ts'
import { storeSecret } from '../../../core/cli/store-secret.ts'

/** The vault, and the plugins it needs. */
const PLUGINS = ['auth', 'agents', 'vault']

/**
 * Stores it through the running gateway. If none runs, starts one only for this, on a free loopback port and with only the
 * required plugins. Resolves to null if it was stored, otherwise to the reason why not.
 */
export async function keepKey(cli: Cli, secret: string, value: string): Promise<string | null> {
	const { env, home, signal } = cli
	try {
		if ((await holderOf(home)) !== null) {
			// SVC_URL may point to another gateway.
			const url = readRuntimeFile(home)?.url
			if (url) await storeSecret(openApi({ env: { ...env, SVC_URL: url }, home, signal }), secret, value)
			return url ? null : 'the gateway has not started yet'
		}
		const { boot } = await import('../../../core/boot.ts')
		const alone = { ...env, SVC_HOST: '127.0.0.1', SVC_PORT: '0', SVC_LEGACY_PORT: '0', SVC_LOG_LEVEL: 'silent' }
		const { gateway, stop } = await boot({ home, env: alone, only: PLUGINS })
		try {
			const url = gateway.status.url('main') ?? ''
			await storeSecret(openApi({ env: { ...env, SVC_URL: url }, home, signal }), secret, value)
		} finally {
			await stop()
		}
		return null
	} catch (error) {
		if (error instanceof CliError && error.exit === 'interrupted') throw error
		if (error instanceof CliError || isFault(error)) return error.message
		throw error
	}
}
