import { readRuntimeFile } from '../process/runtime-file.ts'
import { CliError } from './contract.ts'

const DEFAULT = 'http://127.0.0.1:3000'

/**
 * Where the gateway is, without a slash at its end: `SVC_URL`, else what the home's gateway wrote down, else port 3000.
 * Read again for each request, since a gateway that was started again may have another port; while it is away, the address
 * stays what it was, and never becomes that of another gateway.
 */
export function addressBook(env: Readonly<NodeJS.ProcessEnv>, home: string): () => string {
	let latest: string | undefined
	return () => {
		latest = env.SVC_URL ? checked(env.SVC_URL) : (writtenDown(home) ?? latest ?? DEFAULT)
		return latest
	}
}

/** Undefined if none runs, or not from this home. */
function writtenDown(home: string): string | undefined {
	const url = readRuntimeFile(home)?.url
	try {
		return typeof url === 'string' ? checked(url) : undefined
	} catch {
		return undefined
	}
}

function checked(text: string): string {
	const url = URL.parse(text)
	if (url && /^https?:$/.test(url.protocol) && !url.username && !url.password && !url.search && !url.hash)
		return url.href.replace(/\/+$/, '')
	throw new CliError('usage', 'SVC_URL must be an address such as http://127.0.0.1:3000; a token belongs in SVC_TOKEN')
}
