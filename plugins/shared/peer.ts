/**
 * The addresses of the connection on which a client sent its request. If another gateway of the cluster forwarded the request,
 * they are those at that gateway (plugins/cluster/forwarding/accept.ts). So code that depends on the client's address must use
 * `peerOf` and not the socket.
 */
export interface Peer {
	remoteAddress?: string | undefined
	localAddress?: string | undefined
}

const forwarded = new WeakMap<object, Peer>()

export function peerOf(request: { socket: Peer }): Peer {
	return forwarded.get(request) ?? request.socket
}

/** Must be called only with proof of the origin of the request. */
export function setPeer(request: object, peer: Peer): void {
	forwarded.set(request, peer)
}
