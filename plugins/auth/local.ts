/**
 * Does a request count as local? The whole rule, without any state.
 *
 * A web page that a user of this machine has open can send requests to loopback addresses too, and so can everybody
 * behind a proxy that runs here. So the peer's address alone says nothing: every sign of a browser's foreign page, of DNS
 * rebinding or of a proxy makes a request not local. It is then not refused, it needs a token.
 */
import { isLoopback } from './address.ts'

/** What the rule looks at; Node's IncomingMessage has it all. */
export interface Arrival {
	/** Name, value, name, value …, as they came: Node's parsed headers hide the second of two. */
	rawHeaders: readonly string[]
	/** The request target. */
	url?: string | undefined
	socket: { remoteAddress?: string | undefined; localAddress?: string | undefined }
}

/** Null where it is local, otherwise why not, in words that follow "since". */
export function whyNotLocal(request: Arrival, allowedHosts: readonly string[]): string | null {
	const { remoteAddress = '', localAddress = '' } = request.socket
	if (!isLoopback(remoteAddress) || !isLoopback(localAddress)) return 'it comes from another machine'

	const forwarded = namesOf(request).find(isForwarding)
	if (forwarded !== undefined) return `its header ${forwarded} says that it came through a proxy`

	const host = parseHost(valuesOf(request, 'host')[0] ?? '')
	if (!host || !isLocalName(host.name, allowedHosts)) {
		return 'its Host is neither localhost nor a loopback address nor listed in server.allowed_hosts'
	}
	if (!targets(request.url ?? '/', host)) return 'its target names another host than its Host header'
	const origins = valuesOf(request, 'origin')
	if (!origins.every((origin) => isSameOrigin(origin, host))) return 'its Origin is another one'
	const sites = valuesOf(request, 'sec-fetch-site')
	// "none" is what a browser says of an address that its user typed.
	if (!sites.every((site) => site === 'same-origin' || site === 'none')) return 'its Sec-Fetch-Site names another site'
	// Browsers send neither with a plain GET to a name that they do not count as trustworthy, such as one of the network.
	const saysNothing = origins.length === 0 && sites.length === 0
	if (saysNothing && !valuesOf(request, 'referer').every((page) => isSameOrigin(page, host))) {
		return 'its Referer is a page of another origin'
	}
	return null
}

/** True for exactly one Host header. With two, a proxy may judge by the one and we by the other. */
export function hasOneHost(request: Pick<Arrival, 'rawHeaders'>): boolean {
	return valuesOf(request, 'host').length === 1
}

interface Host {
	/** Lower case, IPv6 without brackets. */
	name: string
	port: number
}

const HTTP_PORT = 80
const forwardingHeaders = new Set([
	'client-ip',
	'fastly-client-ip',
	'fly-client-ip',
	'forwarded',
	'forwarded-for',
	'true-client-ip',
	'via',
	'wl-proxy-client-ip',
	'x-appengine-user-ip',
	'x-azure-clientip',
	'x-client-ip',
	'x-cluster-client-ip',
	'x-proxyuser-ip',
	'x-real-ip',
	'x-remote-addr',
])
const forwardingPrefixes = ['x-forwarded', 'x-original-', 'x-envoy-', 'cf-', 'tailscale-']

/** Some proxies write underscores for hyphens. */
function isForwarding(header: string): boolean {
	const name = header.replaceAll('_', '-')
	return forwardingHeaders.has(name) || forwardingPrefixes.some((prefix) => name.startsWith(prefix))
}

function isLocalName(name: string, allowedHosts: readonly string[]): boolean {
	return name === 'localhost' || isLoopback(name) || allowedHosts.includes(name)
}

/** `name`, `name:port`, `[v6]` or `[v6]:port`; undefined for anything else. */
function parseHost(text: string): Host | undefined {
	const match = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::(\d{1,5}))?$/.exec(text.toLowerCase())
	if (!match) return undefined
	return { name: match[1] ?? match[2] ?? '', port: Number(match[3] ?? HTTP_PORT) }
}

/** A target may be a whole address (`GET http://host/path`), which goes before the Host header. */
function targets(target: string, host: Host): boolean {
	return target.startsWith('/') || isSameOrigin(target, host)
}

/** The gateway itself speaks plain HTTP only: a page from https came through something else. */
function isSameOrigin(address: string, host: Host): boolean {
	const match = /^http:\/\/([^/?#]+)/i.exec(address)
	const other = match?.[1] === undefined ? undefined : parseHost(match[1])
	return other !== undefined && other.name === host.name && other.port === host.port
}

function namesOf({ rawHeaders }: Arrival): string[] {
	return rawHeaders.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase())
}

function valuesOf({ rawHeaders }: Pick<Arrival, 'rawHeaders'>, wanted: string): string[] {
	return rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === wanted)
}
